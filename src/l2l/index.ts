/** The public interface of the module: networks as learners, and their execution. Terms: docs/reference/glossary.md. */

export type {
  CustomLayer,
  CustomLayerContext,
  CustomLayerFactory
} from '../nn/layers/custom-kinds.js'
export { parseModel } from '../nn/spec/model-spec.js'
export {
  alphabetOf,
  createTokenizer,
  nextTokenRows,
  parseTokenizer,
  textRow,
  trainTokenizer
} from '../nn/tokenizers/index.js'
export {
  checkpointBlocks,
  deviceFor,
  frozenOf,
  initialOf,
  networkLearner,
  networkModel,
  wholeBlocks,
  wholeNetwork
} from './execution.js'
export type { Execution, GroupExecution } from './executor/types.js'
export { Generation, TextReader } from './generation.js'
export { type PartitionRow, partitionTable } from './planning/partition.js'
export * as planning from './planning/planner.js'
export { resolveExecution } from './planning/planner.js'
export { type LayerProfile, profileModel } from './planning/profile.js'
export type { Plan } from './planning/types.js'
export { LayerReader, storedBlocks } from './store/layer-file.js'
export { diskOptions, type LayerPlace, storedLayers } from './store/place.js'
export { type ExecutionReport, L2LEngine, serverThreadsOf } from './training/engine.js'
export { type DiskNeeds, diskNeeds } from './training/param-server.js'
export type { Hosts, HostsInit, ZeroLevel } from './training/partition.js'
export type { GradientCode } from './workers/gradient-codes.js'
export type { DevicePool } from './workers/pool.js'
export type { WorkerInit } from './workers/worker-handle.js'
