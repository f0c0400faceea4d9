/** Options of the wrong type, which TypeScript refuses and JavaScript does not, are errors that name the option. */
import assert from 'node:assert/strict'
import * as library from '../../../src/index.js'

// As in JavaScript.
type Call = (...values: unknown[]) => unknown
const { createAveraging, createLearner, createPeer, createRule, simulate, train } = library as unknown as Record<
  string,
  Call
>
const start = (options: unknown) => library.Peer.start(options as library.PeerOptions)

const data = {
  inputs: [
    [0, 1],
    [1, 0]
  ],
  labels: ['no', 'yes'],
  classNames: ['no', 'yes']
}
const spec = {
  model: 'logistic',
  dimension: 2,
  rule: { name: 'adagrad' },
  averaging: { name: 'tail' },
  batch: 32,
  features: { constant: false, scale: 'none' }
}
const peer = { spec, listen: [], log: () => undefined }
const learner = { model: 'logistic', dimension: 3 }

describe('options of the wrong type', () => {
  const cases: readonly (readonly [RegExp, () => unknown])[] = [
    [/^rule must be an object such as \{ name: 'adagrad' \}, not a string$/, () => createRule('momentum')],
    [/^rule must be an object such as .*, not null$/, () => createRule(null)],
    [/^rule must be an object such as .*, not an object$/, () => createRule({ name: 5 })],
    [/^rule adam: step must be a number above 0, not '0\.1'$/, () => createRule({ name: 'adam', step: '0.1' })],
    [/^averaging must be an object such as \{ name: 'tail' \}, not a string$/, () => createAveraging('tail')],
    [/createLearner must be an object, not undefined/, () => createLearner()],
    [
      /createLearner: unknown option dimensions; did you mean dimension\?/,
      () => createLearner({ ...learner, dimensions: 3 })
    ],
    [/createLearner: dimension must be a number, not a string/, () => createLearner({ ...learner, dimension: '3' })],
    [/train must be an object, not a string/, () => train('digits')],
    [/train: rule must be an object such as .*, not a string/, () => train({ ...data, rule: 'momentum' })],
    [/train: features must be a number, not a string/, () => train({ ...data, features: '2' })],
    [/train: target must be 'class' or 'number', not 'klass'/, () => train({ ...data, target: 'klass' })],
    [/train: unknown option learningRate; remove it/, () => train({ ...data, learningRate: 1 })],
    [/train: batch must be a number or 'MIN\.\.MAX' or 'auto', not '8'/, () => train({ ...data, batch: '8' })],
    [/train: labels must be an array, not a string/, () => train({ ...data, labels: 'no,yes' })],
    [/train: data must be a string or an object, not a number/, () => train({ data: 5 })],
    [
      /train: data: unknown option maxRow; did you mean maxRows\?/,
      () => train({ data: { data: 'digits', maxRow: 5 } })
    ],
    [/train: data\.maxRows must be a number, not a string/, () => train({ data: { data: 'digits', maxRows: '5' } })],
    [/train: execution\.hostMemory must be a number/, () => train({ ...data, execution: { hostMemory: '1' } })],
    [/^the scenario must be a string or an object such as .*, not undefined/, () => simulate()],
    [/^the values of the scenario must be an object/, () => simulate('binary-tree', 'admb')],
    [
      /^the options of simulate: unknown option quiese; did you mean quiesce\?/,
      () => simulate('binary-tree', {}, { quiese: true })
    ],
    [/the peer: spec must be an object, not a string/, () => start({ ...peer, spec: 'logistic' })],
    [/the peer: spec must be an object, not undefined/, () => start({ ...peer, spec: undefined })],
    [/the peer: spec\.rule must be an object such as/, () => start({ ...peer, spec: { ...spec, rule: 'adam' } })],
    [
      /the peer: spec: unknown option batchs; did you mean batch\?/,
      () => start({ ...peer, spec: { ...spec, batchs: 2 } })
    ],
    [/the peer: listen must be an array of strings, not a string/, () => start({ ...peer, listen: '/ip4/0.0.0.0' })],
    [/the peer: period must be a number or 'auto', not '100'/, () => start({ ...peer, period: '100' })],
    [/the peer: networkKey must be a Uint8Array, not a string$/, () => start({ ...peer, networkKey: 'secret' })],
    [/createPeer must be an object, not undefined/, () => createPeer()],
    [/createPeer: unknown option dirr; did you mean dir\?/, () => createPeer({ features: 2, dirr: 'state' })],
    [/createPeer: http must be an object, not a boolean/, () => createPeer({ features: 2, http: true })],
    [/createPeer: http\.port must be a number, not a string/, () => createPeer({ features: 2, http: { port: '8000' } })]
  ]
  for (const [message, call] of cases) {
    it(message.source, () => assert.rejects(async () => call(), { code: 'ERR_OPTION', message }))
  }

  it('no option of train ends in an error without a code, whatever its value', async () => {
    const names = [
      'model',
      'features',
      'hashBits',
      'classes',
      'classNames',
      'classWeights',
      'classesMax',
      'target',
      'constant',
      'batch',
      'rule',
      'averaging',
      'sums',
      'localSteps',
      'influence',
      'l2',
      'targetScale',
      'scale',
      'schema',
      'data',
      'length',
      'tokenizer',
      'checkpoint',
      'freeze',
      'lora',
      'plugins',
      'inputs',
      'labels',
      'weights',
      'predictWith',
      'execution'
    ]
    const values = [
      null,
      5,
      -1,
      Number.NaN,
      '5',
      '',
      true,
      [],
      {},
      ['x'],
      [5],
      [null],
      { name: 5 },
      { x: 'y' },
      () => 0,
      5n
    ]
    const failures: string[] = []
    for (const name of names) {
      for (const value of values) {
        try {
          await train({ ...data, [name]: value })
        } catch (error) {
          const { code, message } = error as { code?: string; message: string }
          if (!code?.startsWith('ERR_') || error instanceof TypeError)
            failures.push(`${name}: ${String(value)}: ${message}`)
        }
      }
    }
    assert.deepEqual(failures, [])
  })
})
