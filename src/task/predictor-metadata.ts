/**
 * What a program needs of a predictor: its parameters as named tensors, and what it takes besides them to predict a row: columns
 * with their features and scaling, classes, and the scale of a predicted number. All values are text, as safetensors and ONNX
 * require.
 */

import { EPOCH_DAYS, isFeature, Layout, murmur3, type SavedMoments, scaleOf, YEARS_10 } from '../data/index.js'
import type { Blocks } from '../learning/index.js'
import type { NamedTensor } from '../nn/weights/safetensors.js'
import { classNamesOf } from './learning-parts.js'
import { type FeatureSpec, growingNames, type LearningSpec, predictsNumbers, targetScaleOf } from './learning-spec.js'
import { specText } from './spec-text.js'

const NOTHING = new Uint8Array(0)

/** A column of the table, with the indices of its weights. */
export interface ColumnEntry {
  readonly name: string
  readonly kind: string
  /** Interaction: its columns. */
  readonly of?: readonly string[]
  /** Number, time or product: index of its (first) weight. */
  readonly feature?: number
  /** Index of the weight that is added if the value is missing. */
  readonly indicator?: number
  /** The value is centred by the mean and divided by the deviation, within ±10 deviations. */
  readonly mean?: number
  readonly deviation?: number
  /** Category or text: the seed of the 32-bit MurmurHash3 of a value. */
  readonly seed?: number
}

/**
 * @param moments the running moments of the features, if the spec scales by them
 * @param classNames of all classes @default those of the spec
 */
export function predictorMetadata(
  spec: LearningSpec,
  moments?: SavedMoments,
  classNames = spec.features.classNames
): Record<string, string> {
  const { constant, columns, hashBits } = spec.features
  const scale = targetScaleOf(spec)
  const classes = classNames ?? Array.from({ length: spec.classes ?? 2 }, (_, number) => String(number))
  const table = columns && new Layout(columns, hashBits)
  return {
    spec: specText(spec),
    ...(!predictsNumbers(spec) && { classes: JSON.stringify(classes) }),
    ...(constant && { constant: '0' }),
    ...(table && { columns: JSON.stringify(columnsOf(spec.features, moments)) }),
    ...(table && table.hashed > 0 && hashedOf(table, constant ? 1 : 0)),
    ...(scale && { target: JSON.stringify(scale) }),
    ...(moments && { scaling: JSON.stringify(moments) })
  }
}

/** The columns of the features of a table; undefined without columns. */
export function columnsOf(
  { columns, hashBits, constant }: FeatureSpec,
  moments: SavedMoments = []
): ColumnEntry[] | undefined {
  if (columns === undefined) return undefined
  const table = new Layout(columns, hashBits)
  const first = constant ? 1 : 0
  const running = new Map(moments.map(([feature, ...moment]) => [feature, moment]))
  const products = new Set(table.derived.products.map(one => one.feature))
  return table.columns
    .filter(isFeature)
    .map(({ name, kind, of, feature, indicator, seed, origin, mean, deviation }) => {
      const isPair = kind === 'interaction' && !products.has(feature)
      const isHashed = kind === 'category' || kind === 'text'
      const isNumber = kind === 'number' || kind === 'time'
      const moment = isNumber ? running.get(feature + first) : undefined
      // The position in time is in decades, and its mean and deviation here are in days.
      const [from, unit] = kind === 'time' ? [origin ?? EPOCH_DAYS, YEARS_10] : [origin, undefined]
      return {
        name,
        kind,
        ...(of && { of }),
        ...(isHashed ? { seed } : isPair ? {} : { feature: feature + first }),
        ...(indicator >= 0 && { indicator: indicator + first }),
        // A missing value is a category of its own.
        ...(kind === 'category' && {
          indicator: first + table.hashedFrom + (murmur3(NOTHING, 0, 0, seed) & (table.hashed - 1))
        }),
        ...(moment ? scalingOf(moment, mean ?? from, deviation ?? unit) : mean !== undefined && { mean, deviation })
      }
    })
}

/**
 * Running moments, of values that the schema has scaled by `first` and `unit` before. A value that has never varied is scaled
 * to 0.
 */
function scalingOf(
  [count, mean, squares]: readonly [number, number, number],
  first = 0,
  unit = 1
): Pick<ColumnEntry, 'mean' | 'deviation'> {
  const deviation = scaleOf(count, squares)
  return { mean: first + unit * mean, deviation: deviation > 0 ? unit * deviation : Number.MAX_VALUE }
}

/** The weights that hashed values share: `from`, plus the hash modulo `size`. */
function hashedOf(table: Layout, first: number): Record<string, string> {
  return { hashed: JSON.stringify({ from: table.hashedFrom + first, size: table.hashed }) }
}

/**
 * A linear model has one tensor, `weights`: [dimension], or [dimension, classes] for softmax. That of a program has one for each of
 * its parameters, without their shapes.
 */
export async function predictorTensors(spec: LearningSpec, blocks: Blocks): Promise<NamedTensor[]> {
  if (spec.model === 'external')
    return spec.program.blocks.map(({ name, length }, k) => ({ name, shape: [length], read: () => blocks[k] }))
  if (spec.network === undefined) {
    const outputs = blocks[0].length / spec.dimension
    const used = growingNames(spec) ? (classNamesOf(spec, blocks)?.length ?? outputs) : outputs
    const shape = spec.model === 'softmax' ? [spec.dimension, used] : [spec.dimension]
    // Classes that are not known yet have no weights.
    const numbers = used === outputs ? blocks[0] : blocks[0].filter((_, i) => i % outputs < used)
    return [{ name: 'weights', shape, read: () => numbers }]
  }
  const [{ networkModel }, { exportBlocks }] = await Promise.all([
    import('../l2l/index.js'),
    import('../nn/weights/exchange.js')
  ])
  return exportBlocks(networkModel(spec.network), blocks, 'admb')
}
