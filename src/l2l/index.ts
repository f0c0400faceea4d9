/** The room's public face: networks as learners, and how they are executed. */

export { ModelError } from '../nn/errors.js'
export type {
  CustomLayer,
  CustomLayerContext,
  CustomLayerFactory
} from '../nn/layers/custom-kinds.js'
export { loadModel, parseModel } from '../nn/spec/model-spec.js'
export type { NetworkSpec } from '../nn/spec/network-spec.js'
export { readsText, sampleFor } from '../nn/spec/sample.js'
export { alphabetOf } from '../nn/tokenizers/characters.js'
export { createTokenizer } from '../nn/tokenizers/create.js'
export { nextTokenRows, textRow } from '../nn/tokenizers/rows.js'
export type { Tokenizer } from '../nn/tokenizers/tokenizer.js'
export { deviceFor, networkLearner, networkModel } from './execution.js'
export type { Execution } from './execution-options.js'
export { planFor, resolveExecution } from './planning/planned.js'
export { type LayerProfile, profileModel } from './planning/profile.js'
export type { Plan } from './planning/task.js'
export { type ExecutionReport, L2LEngine } from './training/engine.js'
