"""Readers, vocabularies and packing: from text to batches of ids.

A tower of its own: it needs TensorFlow, and nothing of the language.

    where text is       text_pair, text_lines, tfds_reader (all `TextSource`s)
    where ids are       tfds_reader, tfrecord_reader
    text <-> ids        byte_vocabulary, sentencepiece_vocabulary, ...
    ids -> rows         encode, trim, packing or pad: `pipeline` is the order
    rows -> batches     batch, iterator

What a trainer calls is a dataset function (`dataset_fn.DatasetFn`), bound in a
gin file: `text_dataset`, `untokenized_tfds_dataset`,
`pretokenized_tfds_dataset`, `pretokenized_t2t_dataset` or
`packed_parallel_tsv_dataset`. All are called alike:

    examples = fn(
      dataset_split="train",
      sequence_length={"inputs": 64, "targets": 64},
      vocabulary=vocabulary,         # or a pair, for inputs and targets
      seed=0,
      shard=(1, 0),                  # number of shards, index
    )

and return a `tf.data.Dataset` of dictionaries of int32 vectors of fixed
length, not batched. For "train" they repeat without end, shuffled anew in each
pass as `seed` decides, and packed unless told otherwise. Any other split is one
pass, in order, an example a row. Then

    batches = CheckpointableIterator(training_batches(examples, 16))
    for batch, num_real in evaluation_batches(examples, 16): ...

Plain text for BLEU, in the order of evaluation: `text_source.plain_text`.
`mesh_tf2.data.configurables` registers every gin name.
"""
