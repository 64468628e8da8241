//! A loaded model with its vocabulary. Its input are token ids, its output are vectors or scores.

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use strata_core::{Error, Result, hash};
use tokenizers::Tokenizer;

use crate::lexicon;

/// The file names that hubs and exporters use for a model, best for a CPU first.
const MODEL_FILES: [&str; 3] = ["model_int8.onnx", "model_quantized.onnx", "model.onnx"];

/// The maximum number of token positions of one run, including padding. Larger batches are not faster (measured: the same time for
/// an item of 64 tokens in batches of 8, 16 and 32 items) and take more memory: 2,048 positions take 25 MB.
const MAX_BATCH_TOKENS: usize = 512;

/// The name of the tensors of Strata's own networks in their graphs.
const TENSORS: &str = "tensors.data";

/// The niceness of background threads: they get about a tenth of a processor that others want, so they never starve.
#[cfg(target_os = "linux")]
const BACKGROUND_NICENESS: i32 = 10;

/// The maximum number of token positions of a run that takes one thread.
const SHORT_RUN_TOKENS: usize = 64;

/// `[CLS]` and `[SEP]` in the vocabulary of Strata's own networks.
const START: u32 = 101;
const END: u32 = 102;

/// How urgent a run is. A background batch must not delay a question, so the two never share threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A caller waits for the answer: a short run has a thread to itself, a long one uses all cores.
    Foreground,
    /// A caller waits for many runs, which go side by side: each has a thread to itself, whatever its length.
    SideBySide,
    /// No caller waits: all such runs share one thread, which gives way to others.
    Background,
}

/// One sequence of token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) ids: Vec<u32>,
    /// The position at which the second segment (token type 1) begins, for models that read pairs.
    pub(crate) second_from: usize,
}

impl Sequence {
    pub(crate) fn single(ids: Vec<u32>) -> Self {
        let second_from = ids.len();
        Self { ids, second_from }
    }
}

/// A model and its vocabulary.
pub(crate) struct Session {
    model: Model,
    vocabulary: Vocabulary,
    lanes: Lanes,
    background: Arc<ThreadPool>,
}

/// Threads for short runs that a caller waits for, each with one run at a time and at most one for each processor. For a question
/// of a dozen pieces, a second thread gains less than it costs to hand work over, and on a busy machine the slower of the two
/// decides.
struct Lanes {
    most: usize,
    state: Mutex<LanesState>,
    given_back: Condvar,
}

#[derive(Default)]
struct LanesState {
    free: Vec<Arc<ThreadPool>>,
    made: usize,
}

impl Lanes {
    fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), given_back: Condvar::new() }
    }

    /// A free lane; waits if all are busy.
    fn take(&self) -> Arc<ThreadPool> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(lane) = state.free.pop() {
                return lane;
            }
            if state.made < self.most {
                state.made += 1;
                return Arc::new(ThreadPool::with_num_threads(1));
            }
            state = self.given_back.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, lane: Arc<ThreadPool>) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).free.push(lane);
        self.given_back.notify_one();
    }
}

/// How a text becomes token ids.
enum Vocabulary {
    /// The word pieces of Strata's own networks, which the lexicon knows.
    WordPieces,
    /// The `tokenizer.json` of a folder.
    File(Box<Tokenizer>),
}

impl Session {
    /// The model of a folder, with its `tokenizer.json`.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let path = model_file(dir)?;
        let model = options().load_file(&path).map_err(|error| {
            Error::invalid(format!("`{}` is not an ONNX model that can be run", path.display()))
                .with_source(error)
        })?;
        let vocabulary = Vocabulary::File(Box::new(read_tokenizer(&dir.join("tokenizer.json"))?));
        Ok(Self::new(model, vocabulary))
    }

    /// One of Strata's own networks, whose weights are inside the program as `strata-weights` holds them: the tensors, the graph,
    /// and the length of the graph. The tensors are used where they are.
    pub(crate) fn of_program(weights: &'static [u8]) -> Result<Self> {
        let damaged = || Error::internal("the program's own network cannot be read; install Strata again");
        let (rest, length) = weights.split_last_chunk().ok_or_else(damaged)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| damaged())?;
        let graph = rest.len().checked_sub(length).ok_or_else(damaged)?;
        let (tensors, graph) = rest.split_at(graph);
        let model = options().external_data_static(TENSORS, tensors).load_static_slice(graph);
        let model = model.map_err(|error| damaged().with_source(error))?;
        Ok(Self::new(model, Vocabulary::WordPieces))
    }

    fn new(model: Model, vocabulary: Vocabulary) -> Self {
        let background = ThreadPool::with_num_threads(1);
        background.run(give_way);
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { model, vocabulary, lanes: Lanes::new(processors), background: Arc::new(background) }
    }

    /// Whether the model has an output of this name.
    pub(crate) fn has_output(&self, name: &str) -> bool {
        self.model.node_id(name).is_ok_and(|id| self.model.output_ids().contains(&id))
    }

    /// The first `most` token ids of a text, without the special ones.
    pub(crate) fn first_pieces(&self, text: &str, most: usize) -> Result<Vec<u32>> {
        let Vocabulary::File(tokenizer) = &self.vocabulary else { return lexicon::first_pieces(text, most) };
        let mut pieces = encode(tokenizer, text)?;
        pieces.truncate(most);
        Ok(pieces)
    }

    /// The last `most` token ids of a text, without the special ones.
    pub(crate) fn last_pieces(&self, text: &str, most: usize) -> Result<Vec<u32>> {
        let Vocabulary::File(tokenizer) = &self.vocabulary else { return lexicon::last_pieces(text, most) };
        let mut pieces = encode(tokenizer, text)?;
        pieces.drain(..pieces.len().saturating_sub(most));
        Ok(pieces)
    }

    /// The token that begins every sequence.
    pub(crate) fn start(&self) -> Result<u32> {
        self.special(START, &["[CLS]", "<s>"])
    }

    /// The token that ends every text of a sequence.
    pub(crate) fn end(&self) -> Result<u32> {
        self.special(END, &["[SEP]", "</s>"])
    }

    fn special(&self, of_strata: u32, names: &[&str]) -> Result<u32> {
        let Vocabulary::File(tokenizer) = &self.vocabulary else { return Ok(of_strata) };
        names
            .iter()
            .find_map(|name| tokenizer.token_to_id(name))
            .ok_or_else(|| Error::invalid(format!("the tokenizer has none of the tokens {names:?}")))
    }

    /// Runs the model over sequences of any lengths and passes the rows of `output` of each sequence to `take`, as (index of the
    /// sequence, its values, values per token). If the model has one row per sequence, that row counts as one token.
    pub(crate) fn run(
        &self,
        sequences: &[Sequence],
        output: Option<&str>,
        urgency: Urgency,
        mut take: impl FnMut(usize, &[f32], usize),
    ) -> Result<()> {
        let output = match output {
            Some(name) => self.output(name)?,
            None => {
                *self.model.output_ids().first().ok_or_else(|| Error::invalid("the model has no output"))?
            }
        };
        for batch in batches(sequences) {
            for tensor in self.run_batch(sequences, &batch, &[output], urgency)? {
                let rows = tensor.shape()[0].max(1);
                let width = tensor.shape().last().copied().unwrap_or(1);
                let values = tensor.to_vec();
                let stride = values.len() / rows;
                for (row, &index) in batch.iter().enumerate() {
                    let used = if tensor.ndim() == 3 { sequences[index].ids.len() * width } else { stride };
                    let start = row * stride;
                    take(index, &values[start..start + used], width);
                }
            }
        }
        Ok(())
    }

    /// Runs the model over each sequence alone, for several outputs with one row per sequence. `take` gets (index of the
    /// sequence, index of the output, its values).
    pub(crate) fn run_heads(
        &self,
        sequences: &[Sequence],
        outputs: &[&str],
        urgency: Urgency,
        mut take: impl FnMut(usize, usize, &[f32]),
    ) -> Result<()> {
        let outputs = outputs.iter().map(|name| self.output(name)).collect::<Result<Vec<_>>>()?;
        for index in 0..sequences.len() {
            let tensors = self.run_batch(sequences, &[index], &outputs, urgency)?;
            for (output, tensor) in tensors.iter().enumerate() {
                take(index, output, &tensor.to_vec());
            }
        }
        Ok(())
    }

    /// Runs the model over each sequence alone, on all processors side by side, for one output with one row per sequence.
    /// Ends early with an error once `is_wanted` says no.
    pub(crate) fn run_side_by_side(
        &self,
        sequences: &[Sequence],
        output: &str,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<f32>>> {
        let output = self.output(output)?;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut rows = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= sequences.len() {
                    return Ok(rows);
                }
                if !is_wanted() {
                    return Err(Error::unavailable("the answer is no longer wanted"));
                }
                let tensors = self.run_batch(sequences, &[index], &[output], Urgency::SideBySide)?;
                rows.extend(tensors.first().map(|tensor| (index, tensor.to_vec())));
            }
        };
        let workers = self.lanes.most.min(sequences.len());
        let mut rows = vec![Vec::new(); sequences.len()];
        std::thread::scope(|scope| {
            let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            for worker in running {
                let panicked = |_| Err(Error::internal("a thread of the model has panicked"));
                for (index, row) in worker.join().unwrap_or_else(panicked)? {
                    rows[index] = row;
                }
            }
            Ok(rows)
        })
    }

    fn output(&self, name: &str) -> Result<NodeId> {
        self.model
            .node_id(name)
            .map_err(|error| Error::invalid(format!("the model has no output `{name}`")).with_source(error))
    }

    fn run_batch(
        &self,
        sequences: &[Sequence],
        batch: &[usize],
        outputs: &[NodeId],
        urgency: Urgency,
    ) -> Result<Vec<Tensor<f32>>> {
        let longest = batch.iter().map(|&index| sequences[index].ids.len()).max().unwrap_or(0);
        let shape = [batch.len(), longest];
        let cell = |row: usize, column: usize| sequences[batch[row]].ids.get(column).copied();
        let ids = NdTensor::from_fn(shape, |[row, column]| cell(row, column).unwrap_or(0) as i32);
        let mask = NdTensor::from_fn(shape, |[row, column]| i32::from(cell(row, column).is_some()));
        let types = NdTensor::from_fn(shape, |[row, column]| {
            i32::from(cell(row, column).is_some() && column >= sequences[batch[row]].second_from)
        });
        let mut inputs: Vec<(NodeId, ValueOrView)> = Vec::with_capacity(3);
        for (name, tensor) in [("input_ids", &ids), ("attention_mask", &mask), ("token_type_ids", &types)] {
            match self.model.node_id(name) {
                Ok(id) if self.model.input_ids().contains(&id) => inputs.push((id, tensor.view().into())),
                // Many models have no token types.
                _ if name == "token_type_ids" => {}
                _ => return Err(Error::invalid(format!("the model has no input `{name}`"))),
            }
        }
        let has_lane = match urgency {
            Urgency::Foreground => batch.len() * longest <= SHORT_RUN_TOKENS,
            Urgency::SideBySide => true,
            Urgency::Background => false,
        };
        let lane = has_lane.then(|| self.lanes.take());
        let mut options = RunOptions::default();
        options.thread_pool = match urgency {
            Urgency::Foreground | Urgency::SideBySide => lane.clone(),
            Urgency::Background => Some(Arc::clone(&self.background)),
        };
        let result = self.model.run(inputs, outputs, Some(options));
        if let Some(lane) = lane {
            self.lanes.give_back(lane);
        }
        let values = result.map_err(|error| Error::internal("the model fails to run").with_source(error))?;
        let tensor = |value: rten::Value| {
            value
                .into_tensor::<f32>()
                .ok_or_else(|| Error::invalid("the model's output holds no floating-point numbers"))
        };
        values.into_iter().map(tensor).collect()
    }
}

/// The indexes of the sequences in batches of similar lengths.
fn batches(sequences: &[Sequence]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..sequences.len()).collect();
    order.sort_by_key(|&index| sequences[index].ids.len());
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for index in order {
        // The sequences come by length, so the last of a batch is its longest and decides the padding.
        match batches.last_mut() {
            Some(batch) if (batch.len() + 1) * sequences[index].ids.len() <= MAX_BATCH_TOKENS => {
                batch.push(index)
            }
            _ => batches.push(vec![index]),
        }
    }
    batches
}

/// Prepacking takes 21 MB and makes a short question about three times faster (5.0 instead of 14.4 ms).
fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}

/// Lowers the priority of the current thread, so that a busy processor serves questions first.
fn give_way() {
    #[cfg(target_os = "linux")]
    {
        // On Linux a thread has a priority of its own. A system that refuses leaves it as it was.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), BACKGROUND_NICENESS);
    }
}

fn read_tokenizer(path: &Path) -> Result<Tokenizer> {
    let mut tokenizer = Tokenizer::from_file(path).map_err(|error| {
        Error::invalid(format!("`{}` cannot be read: {error}", path.display())).with_source(error)
    })?;
    // The file may contain the padding and truncation of the training run; lengths are decided here.
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).map_err(|error| {
        Error::internal("the tokenizer's truncation cannot be switched off").with_source(error)
    })?;
    Ok(tokenizer)
}

fn encode(tokenizer: &Tokenizer, text: &str) -> Result<Vec<u32>> {
    let encoding = tokenizer
        .encode_fast(text, false)
        .map_err(|error| Error::internal("the tokenizer fails").with_source(error))?;
    Ok(encoding.get_ids().to_vec())
}

fn model_file(dir: &Path) -> Result<PathBuf> {
    let candidates = MODEL_FILES.iter().flat_map(|name| [dir.join(name), dir.join("onnx").join(name)]);
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::invalid(format!("`{}` contains no model; add one of {MODEL_FILES:?}", dir.display()))
    })
}

/// The number of blocks of a model's weights that its digest covers, and the bytes of each.
const DIGEST_BLOCKS: u64 = 64;
const DIGEST_BLOCK_BYTES: u64 = 4096;

/// The name of the vector space of a folder's model: the folder's name and a digest of the weights.
///
/// A retrained model in the same folder must not be mistaken for the old one. Reading 34 MB at every start would take longer
/// than the start itself, so the digest covers the size and 64 blocks spread over the file; training changes all of them.
pub(crate) fn space_name(dir: &Path) -> Result<String> {
    let path = model_file(dir)?;
    let unreadable = |error: std::io::Error| {
        Error::unavailable(format!("`{}` cannot be read", path.display())).with_source(error)
    };
    let mut file = File::open(&path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    let name = dir.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    named(&name, size, &mut file).map_err(unreadable)
}

/// The same name for weights inside the program, so that a folder with the same weights shares its vectors.
pub(crate) fn space_name_of(name: &str, weights: &'static [u8]) -> Result<String> {
    let unreadable =
        |error| Error::internal("the weights inside the program cannot be read").with_source(error);
    named(name, weights.len() as u64, &mut Cursor::new(weights)).map_err(unreadable)
}

fn named(name: &str, size: u64, weights: &mut (impl Read + Seek)) -> std::io::Result<String> {
    let mut digest = hash::fnv(&size.to_le_bytes());
    let mut block = Vec::with_capacity(DIGEST_BLOCK_BYTES as usize);
    for number in 0..DIGEST_BLOCKS {
        weights.seek(SeekFrom::Start(size / DIGEST_BLOCKS * number))?;
        block.clear();
        weights.by_ref().take(DIGEST_BLOCK_BYTES).read_to_end(&mut block)?;
        digest = hash::fnv_append(digest, &block);
    }
    Ok(format!("{name}@{digest:016x}"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_run_waits_for_a_free_lane() {
        let lanes = Lanes::new(2);
        let (first, second) = (lanes.take(), lanes.take());
        assert!(!Arc::ptr_eq(&first, &second));
        let (send, taken) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let lane = lanes.take();
                send.send(Arc::ptr_eq(&lane, &first)).unwrap();
            });
            lanes.give_back(Arc::clone(&first));
            assert!(taken.recv().unwrap());
        });
    }

    #[test]
    fn a_damaged_network_of_the_program_says_so() {
        for weights in [&b""[..], b"12345678", b"\x09\0\0\0\0\0\0\0", b"no graph\x08\0\0\0\0\0\0\0"] {
            let error = Session::of_program(weights).err().unwrap();
            assert!(error.message().contains("install Strata again"), "{error}");
        }
    }
}
