/** Tensor parallelism of two devices on a wider transformer, compared with a pipeline, one device and data parallelism: see `pipelines.ts`. */
import { compareGroups } from './pipelines.js'
import type { Row } from './row.js'

const SHAPE = { width: 256, length: 64, batch: 16, microbatch: 4 }

export function bench(): AsyncGenerator<Row> {
  return compareGroups(SHAPE, ['tensor', '1f1b'], 16)
}
