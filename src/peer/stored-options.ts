/** What a peer's state directory remembers of its options. */
import type { Log } from '../network/types.js'
import { MissingStateError, Store } from '../storage/index.js'
import { growingNames, type LearningSpec, parseSpec, schemaOf } from '../task/learning-spec.js'
import type { TaskOptions } from '../task/options.js'

/**
 * The options, with those that a restarted peer keeps although they are not given: the schema, even if another one would be inferred
 * from its file, and the kind of sums, if a peer has learned in the directory.
 * @throws errors of the store
 */
export async function withStored(options: TaskOptions, dir: string | undefined, log: Log): Promise<TaskOptions> {
  const stored = dir === undefined ? undefined : await storedIn(dir)
  if (stored === undefined) return options
  const { spec, hasLearned } = stored
  const schema = options.schema ?? schemaOf(spec)
  if (options.sums !== undefined || !hasLearned) return { ...options, schema }
  const { sums = 'exact' } = spec
  if (sums === 'exact' && canBeIntegers(spec)) {
    log('info', `${dir} has exact sums, which this peer keeps: --sums lattice converts them to integers`, {})
  }
  return { ...options, schema, sums }
}

/** @returns undefined if the directory holds no state */
async function storedIn(
  dir: string
): Promise<{ readonly spec: LearningSpec; readonly hasLearned: boolean } | undefined> {
  let store: Store
  try {
    store = await Store.openExisting(dir)
  } catch (error) {
    if (error instanceof MissingStateError) return undefined
    throw error
  }
  try {
    const text = await store.model()
    return text === undefined ? undefined : { spec: parseSpec(text), hasLearned: await store.hasJournal() }
  } finally {
    await store.close()
  }
}

function canBeIntegers(spec: LearningSpec): boolean {
  return spec.onDrift === undefined && growingNames(spec) === undefined
}
