/** What a checkpoint of this project says of the inputs of its network: columns, classes, and what they are scaled by. */
import type { PredictorId } from '../admb/index.js'
import type { Checkpoint } from '../nn/weights/checkpoint.js'
import type { SavedMoments, Schema } from '../streams/index.js'
import { type LearningSpec, parseSpec, schemaOf } from './learning-spec.js'
import { columnsOf } from './predictor-metadata.js'

export interface OwnCheckpoint {
  readonly spec: LearningSpec
  /** Running moments of the inputs; undefined if the spec does not scale by them. */
  readonly moments: SavedMoments | undefined
  /** Of the predictor that was exported, if it is known. */
  readonly id: PredictorId | undefined
}

/** @returns undefined for a checkpoint of another program */
export function ownCheckpoint({ metadata }: Checkpoint): OwnCheckpoint | undefined {
  if (metadata === undefined) return undefined
  const { spec, scaling, predictor } = metadata
  return { spec: parseSpec(spec), moments: scaling && JSON.parse(scaling), id: predictor && JSON.parse(predictor) }
}

/** How the inputs of a network that starts from a checkpoint are read. */
export interface StartingInputs {
  readonly schema: Schema
  readonly scale: 'none' | 'standard'
  /** Running moments of rows without columns. */
  readonly moments: SavedMoments | undefined
}

/** The inputs of a network that starts from the checkpoint. Its numbers are scaled as those that the weights have learned. */
export function startingInputs({ spec, moments }: OwnCheckpoint): StartingInputs {
  const schema = schemaOf(spec)
  if (schema.columns === undefined) return { schema, scale: spec.features.scale, moments }
  const scaled = new Map(columnsOf(spec.features, moments)?.map(entry => [entry.name, entry]))
  const columns = schema.columns.map(column => {
    const { mean, deviation } = scaled.get(column.name) ?? {}
    return mean === undefined ? column : { ...column, mean, deviation }
  })
  return { schema: { ...schema, columns }, scale: 'none', moments: undefined }
}
