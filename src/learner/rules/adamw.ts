/**
 * AdamW (Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2), as for fine-tuning: biases and
 * norms do not decay, gradients are clipped, and the step size warms up and falls.
 */
import { OptionError } from '../errors.js'
import { describe, type Resolved, resolveOptions } from '../options.js'
import { type AdamOptions, adamRule } from './adam.js'
import { clippedAndDecayed } from './clipping.js'
import type { DividingRule, RuleDefinition } from './definition.js'
import { scalingBy, scalingOptions } from './scaling.js'

export interface AdamWOptions extends Omit<AdamOptions, 'radius'> {
  /** λ of the decay: weights are multiplied by 1 − step·λ in each update, biases and norms are not. @default 0.01 */
  readonly decay?: number
  /** Largest norm of the mean gradient over all blocks; longer ones are scaled. It needs the gradients of all layers. @default none */
  readonly clip?: number
  /** The same for each block, so that layers can be updated before the gradients of others are known. @default none */
  readonly layerClip?: number
  /** Updates over which the step size rises from 0. @default 0 */
  readonly warmup?: number
  /** How the step size falls after the warm-up, to 0 after `total` updates. @default 'constant' */
  readonly schedule?: 'constant' | 'linear' | 'cosine'
  /** Updates after which the step size is 0, for `linear` and `cosine`. */
  readonly total?: number
}

const clipOption = { default: undefined, min: 0, isMinExcluded: true } as const

const options = {
  step: { default: 5e-5, min: 0, isMinExcluded: true, help: 'step size' },
  beta1: { default: 0.9, min: 0, below: 1, help: 'decay of the mean gradient' },
  beta2: { default: 0.999, min: 0, below: 1, help: 'decay of the mean squared gradient' },
  epsilon: { default: 1e-8, min: 0, isMinExcluded: true, help: 'added to the root in the denominator' },
  decay: { default: 0.01, min: 0, help: 'λ: weights other than biases and norms lose step·λ of their size' },
  clip: { ...clipOption, help: "largest norm of all layers' gradients together" },
  layerClip: { ...clipOption, help: "largest norm of each layer's gradient" },
  warmup: { default: 0, min: 0, help: 'updates over which the step size rises from 0' },
  schedule: {
    default: 'constant',
    choices: ['constant', 'linear', 'cosine'],
    help: 'how the step size falls after the warm-up'
  },
  total: { default: undefined, min: 1, help: 'updates after which it is 0, for linear and cosine' },
  ...scalingOptions('root')
} as const

/** State: as of Adam. */
export const adamw: RuleDefinition<AdamWOptions> = {
  summary: 'AdamW for fine-tuning (Loshchilov and Hutter, 2019)',
  options,
  isBlockwise: ({ clip }) => clip === undefined,
  eightBitState: 'elementwise',
  create(given) {
    const values = resolveOptions('rule adamw', options, given)
    if (values.schedule !== 'constant' && values.total === undefined) {
      throw new OptionError(`rule adamw: schedule ${values.schedule} needs total, the number of updates`)
    }
    const rate = rateOf(values)
    return adamRule({ ...values, name: 'adamw', description: describe('adamw', values), rate })
  },
  around(rule: DividingRule, given, layout) {
    const values = resolveOptions('rule adamw', options, given)
    const { step, decay, clip, layerClip } = values
    const rate = rateOf(values)
    const shrink = (updates: number, count: number) => 1 - step * rate(updates, count) * decay
    return clippedAndDecayed(rule, { shrink, clip, layerClip }, layout)
  }
}

function rateOf(values: Resolved<typeof options>) {
  const scale = scalingBy('adamw', values, 'root')
  return (updates: number, count: number) => rateAfter(updates, values) * scale(count)
}

/** Factor of the step size, as by the schedules of Hugging Face's transformers. */
function rateAfter(updates: number, { warmup, schedule, total = warmup }: Resolved<typeof options>): number {
  if (updates < warmup) return updates / warmup
  if (schedule === 'constant') return 1
  const passed = total > warmup ? Math.min(1, (updates - warmup) / (total - warmup)) : 1
  return schedule === 'linear' ? 1 - passed : 1 - squaredSine(passed)
}

/** sin²(πx/2) for x from 0 to 1, by a Taylor polynomial, so that all machines have the same bits. */
function squaredSine(x: number): number {
  const angle = (Math.PI / 2) * x
  const square = angle * angle
  let sum = 0
  for (let n = 17; n >= 3; n -= 2) sum = (-square / (n * (n - 1))) * (1 + sum)
  const sine = angle * (1 + sum)
  return sine * sine
}
