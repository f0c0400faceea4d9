/**
 * Running averages of the predictors. All kinds but `none` are w̄ ← w̄ + γ·(w − w̄), where the weight γ depends on the number of
 * updates and, for `tail`, on the rule. It is computed with + − × ÷ alone, so that every peer's average has the same bits.
 */

import { MIN_KERNEL, mixInto as mixLong } from '../../numeric/block-kernels.js'
import { portableExp } from '../../numeric/exp.js'
import { takeCopy } from '../../numeric/spare-arrays.js'
import { isClassifier, type ModelName } from '../models/model.js'
import { checkOptions, describe, named, OptionError, type OptionTable, resolveOptions } from '../options.js'
import type { Averaging, Blocks } from '../types.js'

/** An average that exposes its weight, so that a sparse trainer can apply it lazily. */
export interface WeightedAveraging extends Averaging {
  /** γ in (0, 1] for the predictor of update `updates` + 1. @param least γ that the rule asks for at least @default 0 */
  weight(updates: number, least?: number): number
  average(previous: Blocks, parameters: Blocks, updates: number, before?: Blocks, least?: number): Float32Array[]
}

/** An average with the metadata that the command line needs. */
interface AveragingDefinition<Options> {
  /** One line for `--average help`. */
  readonly summary: string
  readonly options: OptionTable<Options>
  /** @throws OptionError */
  create(options: Options): WeightedAveraging
}

/** The paper's average, the mean of all predictors: w̄ ← (v·w̄ + w)/(v+1). Suits a stream that does not change. */
const uniform: AveragingDefinition<object> = {
  summary: 'mean of all predictors, as in the paper',
  options: {},
  create(given) {
    resolveOptions('average uniform', {}, given)
    return weighted('uniform', {}, updates => 1 / (updates + 1))
  }
}

interface ExponentialOptions {
  /** Updates after which a predictor's weight halves. The average is the plain mean until then. @default 1000 */
  readonly halfLife?: number
}
const exponentialOptions = {
  halfLife: { default: 1000, min: 0, isMinExcluded: true, help: "updates after which a predictor's weight halves" }
} as const
const exponential: AveragingDefinition<ExponentialOptions> = {
  summary: 'exponentially decaying weights',
  options: exponentialOptions,
  create(given) {
    const values = resolveOptions('average exponential', exponentialOptions, given)
    const least = 1 - portableExp(-Math.LN2 / values.halfLife)
    return weighted('exponential', values, updates => Math.max(least, 1 / (updates + 1)))
  }
}

interface TailOptions {
  /** The newest predictor weighs (1+decay)/(v+1+decay), so about the last 1/(1+decay) of all updates counts. 0 is the plain mean. @default 15 */
  readonly decay?: number
}
const tailOptions = {
  decay: { default: 15, min: 0, help: 'about the last 1/(1+decay) of all updates counts (127 for regression)' }
} as const
/** Polynomial decay (Shamir and Zhang, ICML 2013, section 4), unless the rule asks for more weight of the newest predictor. */
const tail: AveragingDefinition<TailOptions> = {
  summary: 'mean of about the last sixteenth of all predictors (Shamir and Zhang, 2013)',
  options: tailOptions,
  create(given) {
    const values = resolveOptions('average tail', tailOptions, given)
    const { decay } = values
    return weighted('tail', values, (updates, least = 0) => Math.max(least, (1 + decay) / (updates + 1 + decay)))
  }
}

/** The newest predictor instead of an average, for models of which a second copy does not fit into memory. */
const none: AveragingDefinition<object> = {
  summary: 'no average: predictions come from the newest predictor',
  options: {},
  create(given) {
    resolveOptions('average none', {}, given)
    return {
      name: 'none',
      description: 'none()',
      isLocal: true,
      weight: () => 1,
      average: (_, parameters) => [...parameters]
    }
  }
}

/** A definition with any options. */
type Entry = Omit<AveragingDefinition<never>, 'options'> & { readonly options: OptionTable<object> }

/** The registry of averages. A new average is one definition and one line here. */
export const averages = { uniform, exponential, tail, none } as const satisfies Readonly<Record<string, Entry>>

type Averages = typeof averages
/** Name of a built-in average. */
export type AveragingName = keyof Averages
export const averagingNames = Object.keys(averages) as readonly AveragingName[]

type OptionsOf<Average> = Average extends AveragingDefinition<infer Options> ? Options : never

/** An average with its options, as plain data. */
export type AveragingSpec = {
  [Name in AveragingName]: { readonly name: Name } & OptionsOf<Averages[Name]>
}[AveragingName]

/** Chosen by measurement: best or close to it on stationary data, and much better than the plain mean on drifting data. */
export const defaultAveraging: AveragingSpec = { name: 'tail' }

/** The type of the option `averaging`. */
export const averagingType = named<AveragingSpec>(defaultAveraging.name)

/**
 * The average of a linear model. For regression, the tail is shorter by default: a long average of a target that drifts costs more
 * than it gains on a target that does not (docs/results/benchmarks.md).
 */
export function averagingFor(model: ModelName, spec: AveragingSpec = defaultAveraging): AveragingSpec {
  return spec.name === 'tail' && !isClassifier(model) ? { decay: 127, ...spec } : spec
}

/**
 * Creates a running average of predictors.
 * @example
 * const averaging = createAveraging({ name: 'exponential', halfLife: 500 })
 * @throws OptionError for an unknown name or option, or a value out of range or of another type
 */
export function createAveraging(spec: AveragingSpec = defaultAveraging): WeightedAveraging {
  checkOptions('averaging', averagingType, spec)
  if (!Object.hasOwn(averages, spec.name)) {
    throw new OptionError(`unknown average '${spec.name}'; expected one of ${averagingNames.join(', ')}`)
  }
  const { create }: Entry = averages[spec.name]
  return create(spec as never)
}

function weighted(
  name: string,
  values: Record<string, number>,
  weight: (updates: number, least?: number) => number
): WeightedAveraging {
  return {
    name,
    description: describe(name, values),
    weight,
    average: (previous, parameters, updates, _, least) => mix(previous, parameters, weight(updates, least)),
    mixInto: (average, parameters, updates) => mixInto(average, parameters, weight(updates))
  }
}

function mix(previous: Blocks, parameters: Blocks, weight: number): Float32Array[] {
  return previous.map((before, k) => {
    const next = takeCopy(before)
    mixInto(next, parameters[k], weight)
    return next
  })
}

/** Updates the average of one block in place. @param weight γ, see `WeightedAveraging` */
export function mixInto(average: Float32Array, now: Float32Array, weight: number): void {
  if (average.length >= MIN_KERNEL) mixLong(average, now, weight)
  else for (let i = 0; i < average.length; i++) average[i] += weight * (now[i] - average[i])
}

/**
 * A running average that an update changes only where it changes the parameters. A predictor contains the lags l and the retention
 * r, from which the average follows: w̄ = w − r·l. An update of w by Δ gives l ← l + Δ/r and then r ← (1 − γ)·r, which is
 * w̄ ← w̄ + γ·(w − w̄) in other numbers. When r falls below 2⁻⁶⁴, it becomes a factor of the lags, and 1 again.
 */
const SMALLEST_RETENTION = 2 ** -64

/** The same average in lazy form. Without an average, predictors contain nothing of it. */
export function lazyAveraging({ name, description, weight }: WeightedAveraging): Averaging {
  if (name === 'none') {
    return {
      name,
      description,
      isLocal: true,
      average: () => [],
      layout: () => ({ blocks: [] }),
      contain: () => [],
      read: (_, parameters) => parameters
    }
  }
  return {
    name,
    description: `${description} lazy`,
    isLocal: true,
    layout: ({ blocks }) => ({
      blocks: [...blocks.map(block => ({ ...block, name: `${block.name}.lag` })), { name: 'retention', length: 2 }]
    }),
    contain: (average, parameters) => [
      ...parameters.map((block, k) => block.map((w, i) => w - average[k][i])),
      retentionBlock(1)
    ],
    average(previous, parameters, updates, before, least) {
      const retention = retentionOf(previous)
      const next = retention * (1 - weight(updates, least))
      const isSmall = next < SMALLEST_RETENTION
      const lags = parameters.map((block, k) => {
        const lag = previous[k].slice()
        addDifference(lag, block, before[k], retention)
        if (isSmall) for (let i = 0; i < lag.length; i++) lag[i] *= next
        return lag
      })
      return [...lags, retentionBlock(isSmall ? 1 : next)]
    },
    read: (contained, parameters) =>
      parameters.map((block, k) => {
        const average = new Float32Array(block.length)
        readElements(contained[k], block, retentionOf(contained), 0, block.length, average)
        return average
      }),
    readElements: (contained, [weights], from, to, into) =>
      readElements(contained[0], weights, retentionOf(contained), from, to, into)
  }
}

function readElements(
  lag: Float32Array,
  weights: Float32Array,
  retention: number,
  from: number,
  to: number,
  into: Float32Array
): void {
  for (let i = from; i < to; i++) into[i] = weights[i] - retention * lag[i]
}

/** r as the sum of two float32 numbers. */
function retentionBlock(retention: number): Float32Array {
  const high = Math.fround(retention)
  return Float32Array.of(high, retention - high)
}

/** r of what a predictor contains. */
function retentionOf(contained: Blocks): number {
  const [high, low] = contained[contained.length - 1]
  return high + low
}

function addDifference(lag: Float32Array, now: Float32Array, before: Float32Array, retention: number): void {
  for (let i = 0; i < lag.length; i++) if (now[i] !== before[i]) lag[i] += (now[i] - before[i]) / retention
}
