/** Types of the options of tasks and streams, and of learning specs, for the functions that programs call. */
import type { Execution } from '../l2l/index.js'
import { averagingType, type BoundedTrust, type OptionTypes, ruleType, optionTypes as types } from '../learner/index.js'
import type { StreamOptions } from '../streams/index.js'
import type { CustomLossSpec, FeatureSpec, LinearSpec, NetworkLearningSpec } from './learning-spec.js'
import type { TaskOptions } from './options.js'

const { callback, choice, either, flag, list, number, numbers, object, options, text, texts } = types
const target = choice('class', 'number')
const targetScale = object('{ mean: 190, deviation: 180 }')

/** Of `StreamOptions`. */
export const streamType = options<StreamOptions>(
  {
    data: text,
    format: text,
    shard: object('{ index: 0, count: 2 }'),
    holdout: object("{ every: 10, part: 'learn' }"),
    passes: number,
    shuffleWindow: number,
    scaling: object('that of another stream'),
    scaleLater: flag,
    from: either(choice('start', 'now', 'stored'), number),
    resume: either(number, object('the position of an earlier stream')),
    maxRows: number,
    inferLabel: flag,
    classesMax: number,
    countClasses: flag,
    tableHashBits: number,
    tokens: object('rows of tokens'),
    labels: text,
    seed: number,
    noise: number,
    scale: choice('none', 'standard', 'auto'),
    follow: flag,
    stdin: object('a Readable'),
    signal: object('that of an AbortController'),
    onRead: callback,
    onNotice: callback,
    strict: flag,
    onMalformed: callback,
    interactions: list,
    lags: object('{ price: [1, 2] }'),
    source: text,
    target,
    classes: number,
    classNames: texts,
    newClasses: flag,
    onLabel: callback,
    labelDecimal: text,
    grouped: texts,
    ids: flag,
    onHashed: callback,
    unlabelled: flag,
    label: text,
    ignore: texts,
    schema: list,
    columns: texts,
    categorical: texts,
    weight: text,
    id: text,
    time: text,
    na: texts,
    text: choice('words', 'bigrams'),
    delimiter: text,
    encoding: text,
    decimal: choice('.', ','),
    header: flag,
    constant: flag,
    dimension: number,
    ignoreUnknown: flag,
    lacksColumns: flag,
    hashBits: number
  },
  ['data']
)

/** Of `Execution`. */
export const executionType = options<Execution>({
  backend: text,
  schedule: text,
  workers: number,
  store: text,
  hostMemory: number,
  checkpoint: text,
  microbatch: number,
  stash: text,
  deviceMemory: number,
  resident: numbers,
  precision: text
})

/** Of `Trust`. */
export const trustType = either(choice('members', 'bounded'), options<BoundedTrust>({ rate: number, signers: number }))

/** Of `TaskOptions`. */
export const taskTypes: OptionTypes<TaskOptions> = {
  model: either(text, object("{ model: 'mlp' }")),
  features: number,
  hashBits: number,
  classes: number,
  classNames: texts,
  classWeights: either(text, object('{ no: 1, yes: 5 }')),
  classesMax: number,
  target,
  constant: flag,
  batch: either(number, types.matching(/^(\d+\.\.\d+|auto)$/, "'MIN..MAX' or 'auto'")),
  rule: ruleType,
  averaging: averagingType,
  sums: choice('exact', 'lattice'),
  localSteps: number,
  localMomentum: number,
  trust: trustType,
  l2: number,
  targetScale: either(choice('none'), targetScale),
  scale: choice('none', 'standard'),
  schema: either(text, object('{ columns: [] }')),
  data: types.textOr(streamType),
  length: number,
  tokenizer: text,
  checkpoint: text,
  freeze: texts,
  lora: object('{ rank: 8 }'),
  plugins: list
}

const specTypes = {
  model: text,
  dimension: number,
  classes: number,
  classWeights: numbers,
  l2: number,
  rule: ruleType,
  averaging: averagingType,
  batch: number,
  batchMax: number,
  sums: choice('lattice'),
  localSteps: number,
  localMomentum: number,
  influence: choice('bounded'),
  features: options<FeatureSpec>(
    {
      constant: flag,
      hashBits: number,
      columns: list,
      label: text,
      scale: choice('none', 'standard'),
      classNames: texts
    },
    ['constant', 'scale']
  ),
  plugins: text,
  target,
  targetScale,
  network: object('{ layers, sample, target }')
} satisfies OptionTypes<Pick<LinearSpec, 'targetScale'> & Pick<CustomLossSpec, 'target'> & NetworkLearningSpec>

/** Of `LearningSpec`. */
export const specType = options(specTypes, ['model', 'dimension', 'rule', 'averaging', 'batch', 'features'])
