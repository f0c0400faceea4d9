/** The schema of a peer's state directory. */
import { MissingStateError, Store } from '../storage/index.js'
import type { Schema } from '../streams/index.js'
import { parseSpec, schemaOf } from '../task/learning-spec.js'

/**
 * The schema in a state directory, which a restarted peer keeps even if another one would be inferred from its file.
 * @returns undefined if the directory holds no state
 * @throws errors of the store
 */
export async function storedSchema(dir: string | undefined): Promise<Schema | undefined> {
  if (dir === undefined) return undefined
  let store: Store
  try {
    store = await Store.openExisting(dir)
  } catch (error) {
    if (error instanceof MissingStateError) return undefined
    throw error
  }
  try {
    const text = await store.model()
    return text === undefined ? undefined : schemaOf(parseSpec(text))
  } finally {
    await store.close()
  }
}
