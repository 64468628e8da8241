mod evicting;
mod explaining;
mod fixture;
mod inferring;
mod jobs;
mod models;
mod reconciling;
mod ruling;
