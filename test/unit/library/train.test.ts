/** Training in this process from arrays and files, and errors for invalid options and inputs. */
import assert from 'node:assert/strict'
import { simulate } from '../../../src/library/simulate.js'
import { EndedEarlyError, type TrainOptions, train } from '../../../src/library/train.js'

const YES_NO = { classNames: ['no', 'yes'] } as const

describe('train', () => {
  it('learns the same from arrays, typed arrays and objects', async () => {
    const inputs = Array.from({ length: 40 }, (_, i) => [Math.sin(i), Math.cos(i), 1])
    const labels = inputs.map(([x]) => (x > 0 ? 'yes' : 'no'))
    const forms = [
      inputs,
      inputs.map(input => Float64Array.from(input)),
      inputs.map(input => Object.fromEntries(input.entries()))
    ]
    const models = await Promise.all(
      forms.map(form => train({ ...YES_NO, features: 3, inputs: form as TrainOptions['inputs'], labels }))
    )
    for (const model of models) {
      assert.deepEqual(model.parameters, models[0].parameters)
      assert.deepEqual(model.predict([1, 0, 1]), models[0].predict([1, 0, 1]))
      assert.equal(model.predict([1, 0, 1]).label, 'yes')
    }
  })

  it('learns a stream, and is deterministic', async () => {
    const once = await train({ data: 'digits' })
    const again = await train({ data: { data: 'digits' } })
    assert.equal(once.spec.model, 'softmax')
    assert.ok((once.report.accuracy ?? 0) > 0.8)
    assert.deepEqual(again.report, once.report)
  })

  it('returns the learned model with the error that ended it', async () => {
    const inputs = Array.from({ length: 60 }, (_, i) => [Math.sin(i), Math.cos(i), 1])
    const labels = inputs.map(([x]) => Number(x > 0))
    const layers = [
      { kind: 'dense', units: 4, activation: 'tanh' },
      { kind: 'dense', units: 500, activation: 'tanh', from: 5 },
      { kind: 'dense', units: 4, activation: 'tanh', from: 5 }
    ]
    const network = { model: { layers }, classes: 2, batch: 8, execution: { backend: 'cpu' } } as const
    const linear = { model: 'logistic', features: 3, classes: 2 } as const
    const cases: [TrainOptions, number, Partial<EndedEarlyError>][] = [
      [
        { ...linear, inputs: inputs.with(41, [3e38, 3e38, 3e38]), labels },
        41,
        { name: 'ExampleError', code: 'ERR_EXAMPLE' }
      ],
      [
        { ...network, inputs, labels, execution: { ...network.execution, deviceMemory: 8000 } },
        40,
        { name: 'OverBudgetError', code: 'ERR_DEVICE' }
      ]
    ]
    for (const [options, learned, expected] of cases) {
      const failure = await train(options).then(
        () => assert.fail('it did not throw'),
        (error: EndedEarlyError) => error
      )
      assert.ok(failure instanceof EndedEarlyError, String(failure))
      const { name, code, trained, message } = failure
      assert.deepEqual({ name, code }, expected)
      assert.equal(message, (failure.cause as Error).message)
      assert.equal(trained.report.inputs, learned)
      const { execution } = network
      const same = await train({
        ...options,
        execution,
        inputs: inputs.slice(0, learned),
        labels: labels.slice(0, learned)
      })
      assert.deepEqual(trained.parameters, same.parameters)
    }
  })

  it('starts devices to learn, and none to predict', async () => {
    let threads = 0
    const count = () => threads++
    process.on('worker', count)
    const inputs = Array.from({ length: 8 }, (_, i) => [i % 2, 1])
    const labels = inputs.map(([x]) => x)
    const execution = { backend: 'cpu', schedule: '1f1b', workers: 2 } as const
    const model = await train({ model: { model: 'mlp', hidden: [4] }, inputs, labels, batch: 4, execution })
    process.off('worker', count)
    assert.equal(threads, 1)
    assert.equal(model.predict([1, 1]).scores.length, 2)
  }).timeout(20_000)

  it('scales predicted inputs like learned ones', async () => {
    const inputs = Array.from({ length: 200 }, (_, i) => ({ age: 20 + (i % 50), income: 1000 * (i % 7) }))
    const labels = inputs.map(({ age }) => Number(age > 45))
    const model = await train({ hashBits: 8, scale: 'standard', inputs, labels })
    assert.equal(model.predict({ age: 65, income: 3000 }).label, 1)
    assert.equal(model.predict({ age: 22, income: 3000 }).label, 0)
  })

  it('reports a loss that a constant prediction has as well, like the command line', async () => {
    const inputs = Array.from({ length: 300 }, (_, i) => [1e6 * Math.sin(i), i, 1])
    const labels = inputs.map((_, i) => i % 2)
    const reported = async (scale: 'none' | 'standard', values: TrainOptions['labels']) =>
      (await train({ inputs, labels: values, scale })).report.notices.join('\n')
    assert.match(await reported('none', labels), /is above that of a constant prediction.*scale/)
    const easy = inputs.map(([x]) => Number(x > 0))
    assert.doesNotMatch(await reported('standard', easy), /constant prediction/)
  })

  it('rejects numbers that are not finite', async () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, 1e39]) {
      await assert.rejects(train({ inputs: [[1, bad]], labels: [0] }), /feature 1 of input 0 is .*: give a finite/)
    }
  })

  it('reports invalid options and inputs, and what to do', async () => {
    const inputs = [[0, 1]]
    const wrong: [TrainOptions, RegExp][] = [
      [{}, /give either data, or inputs/],
      [{ data: 'digits', inputs, labels: [0] }, /give either data, or inputs/],
      [{ inputs }, /1 inputs came with 0 labels/],
      [{ inputs: [{ a: 1 }], labels: [0] }, /give features, or hashBits/],
      [{ inputs, labels: [0], batch: 0 }, /batch must be a whole number/],
      [
        { inputs, labels: [0], model: 'logistical' as 'logistic' },
        /unknown model 'logistical'; expected one of logistic, /
      ],
      [{ inputs, labels: [0], model: 'custom:huber' }, /unknown loss 'custom:huber' .*: load the plug-in/],
      [{ inputs, labels: [0], rule: { name: 'custom:none' } }, /unknown rule 'custom:none'/],
      [{ inputs, labels: [0], model: { layers: [{ kind: 'dance' }] } }, /expected one of dense, /],
      [
        { inputs, labels: [0], classes: 2, model: { layers: [{ kind: 'custom:dance' }] } },
        /unknown layer custom:dance/
      ],
      [{ data: { data: 'x', format: 'custom:none' } }, /unknown reader 'custom:none'/],
      [{ inputs, labels: ['maybe'], ...YES_NO }, /label "maybe" is not among/]
    ]
    for (const [options, message] of wrong) await assert.rejects(train(options), message)
  })
})

describe('simulate', () => {
  it('runs scenarios by name and by keys, the same each time', () => {
    const values = { nodes: 4, inputs: 400, batch: 16 }
    const { seconds: _, ...run } = simulate('binary-tree', values)
    const { seconds: __, ...again } = simulate('binary-tree', values)
    assert.deepEqual(again, run)
    assert.equal(simulate({ ...values, algorithm: 'serial' }).messages, 0)
    assert.throws(() => simulate('binary-tree', { nods: 4 }), /nods/)
    assert.throws(() => simulate('no-such-scenario'), /expected a YAML file or one of/)
  })
})
