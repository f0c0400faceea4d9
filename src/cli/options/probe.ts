/** What a network of peers learns: from the flags, and from what the data tells before it is read. */

import { openStream, type StreamOptions } from '../../streams/index.js'
import type { LearningSpec } from '../../task/learning-spec.js'
import { UsageError } from '../errors.js'
import { isNetwork, networkOf } from './networks.js'
import type { DataFlags, LearningFlags } from './options.js'
import { hasConstant, learningSpec, modelFor, streamOptions } from './specs.js'
import { textTask } from './texts.js'

/** b of peers. Smaller batches than a frame takes to cross the network gain nothing. */
export const PEER_BATCH = 128

export interface Task {
  readonly spec: LearningSpec
  /** Undefined for a peer that learns only from what is posted to it. */
  readonly stream: StreamOptions | undefined
}

/** @throws UsageError where peers could come to different models; errors of the stream */
export async function probeTask(flags: DataFlags & LearningFlags): Promise<Task> {
  const text = await textTask(flags)
  const stream = flags.data === undefined ? undefined : { ...streamOptions(flags), tokens: text?.tokens }
  // Standard input can be looked at only once.
  const probe = stream && stream.data !== '-' ? await openStream(stream) : undefined
  await probe?.[Symbol.asyncIterator]().return?.()
  const classes = flags.classes ?? flags.classNames?.length ?? probe?.classes
  const hashBits = probe ? probe.hashBits : flags.hashBits
  const columns = probe?.columns ?? flags.columns
  const given = flags.hashBits === undefined ? flags.dimension : 2 ** flags.hashBits
  const dimension = probe?.dimension ?? (given === undefined ? undefined : given + (hasConstant(flags) ? 1 : 0))
  if (dimension === undefined) {
    throw new UsageError(
      'peers must agree on the number of features: give --dimension N, or --hash-bits B to hash them'
    )
  }
  const { model: asked } = flags
  const isOwn = asked !== undefined && isNetwork(asked)
  const model = isOwn
    ? (text?.network ?? (await networkOf(asked, flags, { dimension, classes })))
    : modelFor(asked, { classes })
  if (model === 'softmax' && classes === undefined) {
    throw new UsageError('peers must agree on the number of classes: give --classes N or --class-names A,B,C')
  }
  const batch = flags.batch ?? PEER_BATCH
  return { spec: learningSpec(flags, { model, dimension, classes, hashBits, columns, batch }), stream }
}
