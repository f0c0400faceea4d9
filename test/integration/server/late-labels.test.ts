/** Labels that arrive after their predictions: `POST /predict` gives an id, `POST /learn` brings the label. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LearningSpec, PeerStatus } from '../../../src/peer/index.js'
import { PeerServer, SPEC } from '../../support/http-server.js'
import { OpenApiContract } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'

interface Given {
  readonly label?: string | number
  readonly scores?: number[]
  readonly id?: string
  readonly error?: string
  readonly code?: string
}

/** The figures of this run are those of all its inputs, late ones included. */
function assertFigures({ inputs, averageLoss, accuracy, metrics }: PeerStatus): void {
  assert.ok(metrics)
  for (const figures of [metrics.total, metrics.recent[0]]) {
    assert.equal(figures.inputs, inputs)
    assert.ok(Math.abs(figures.loss - averageLoss) < 1e-6, `${figures.loss} and ${averageLoss}`)
    if (accuracy !== undefined) assert.ok(Math.abs((figures.accuracy ?? 0) - accuracy) < 1e-9)
    if (figures.rmse !== undefined) assert.ok(Math.abs(figures.rmse ** 2 / 2 - averageLoss) < 1e-6)
  }
}

describe('late labels', function () {
  this.timeout(60_000)
  let served: PeerServer
  let contract: OpenApiContract
  const serve = async (labelDelay: number, spec: LearningSpec = SPEC) => {
    served = await PeerServer.start({}, { labelDelay, spec })
    contract = await OpenApiContract.of(served.url)
  }
  afterEach(() => served.stop())

  async function post(
    route: '/predict' | '/learn',
    body: unknown
  ): Promise<{ status: number; answers: Given[]; text: string }> {
    const response = await served.post(route, JSON.stringify(body))
    const value = (await contract.check('post', route, response)) as { predictions?: Given[] }
    return { status: response.status, answers: value.predictions ?? [], text: JSON.stringify(value) }
  }

  /** The status after that many inputs. */
  async function statusAfter(inputs: number) {
    await until('the status', () => served.peer.status().inputs >= inputs)
    return served.peer.status()
  }

  it('in a request with a key are learned once, with the inputs beside them', async () => {
    await serve(60_000)
    const { answers } = await post('/predict', { features: [0, 0, 0, 1] })
    const [{ id }] = answers
    const body = JSON.stringify([
      { label: 'no', features: [1, 0, 0, 0] },
      { id, label: 'yes' }
    ])
    const send = async (key: string) =>
      (await served.post('/learn', body, undefined, { 'idempotency-key': key })).json()
    const first = await send('a')
    assert.deepEqual(await send('a'), first)
    for (let i = 0; i < 20; i++)
      await served.post('/learn', '{"label": "no", "features": [1, 0, 0, 0]}', undefined, { 'idempotency-key': `${i}` })
    const { predictions } = (await send('a')) as { predictions: Given[] }
    assert.equal(predictions[0].label, 'no')
    assert.match(predictions[1].error ?? '', /received before/)
    assert.equal((await statusAfter(22)).inputs, 22)
  })

  it('count the prediction that was given, and learn its input', async () => {
    await serve(60_000)
    const [first, second] = (await post('/predict', [{ features: [0, 0, 0, 1] }, { features: [1, 0, 0, 0] }])).answers
    assert.ok(first.id && second.id && first.id !== second.id)
    // The predictor improves before the labels arrive.
    for (let i = 0; i < 10; i++)
      await post('/learn', [
        { label: 'yes', features: [0, 0, 0, 1] },
        { label: 'no', features: [1, 0, 0, 0] }
      ])
    const before = await statusAfter(20)
    const { answers } = await post('/learn', [
      { id: first.id, label: 'yes' },
      { id: second.id, label: 'yes' }
    ])
    assert.deepEqual(answers, [first, second])
    const after = await statusAfter(22)
    assert.equal(after.inputs, before.inputs + 2)
    assert.ok(after.updates > before.updates)
    const loss = after.averageLoss * after.inputs - before.averageLoss * before.inputs
    const expected = -Math.log(first.scores?.[1] ?? 0) - Math.log(second.scores?.[1] ?? 0)
    assert.ok(Math.abs(loss - expected) < 1e-6, `${loss}, expected ${expected}`)
    assertFigures(after)
  })

  it('count the squared error of the number that was predicted', async () => {
    await serve(60_000, { ...SPEC, model: 'linear', features: { constant: false, scale: 'none' } } as LearningSpec)
    await post('/learn', [
      { label: 3, features: [1, 0, 0, 0] },
      { label: 3, features: [1, 0, 0, 0] }
    ])
    const [given] = (await post('/predict', { features: [1, 0, 0, 0] })).answers
    const before = await statusAfter(2)
    await post('/learn', { id: given.id, label: 5 })
    const after = await statusAfter(3)
    assertFigures(after)
    const loss = after.averageLoss * after.inputs - before.averageLoss * before.inputs
    assert.ok(Math.abs(loss - 0.5 * (5 - Number(given.label)) ** 2) < 1e-6)
  })

  it('are refused in place, one by one, and with status 410 if all are', async () => {
    await serve(1500)
    const [expired] = (await post('/predict', { features: [0, 0, 0, 1] })).answers
    await sleep(1700)
    const late = await post('/learn', { id: expired.id, label: 'yes' })
    assert.equal(late.status, 410)
    assert.match(late.text, /has its label, or its time is over: send the whole input, or increase --label-delay/)
    const [given] = (await post('/predict', { features: [0, 0, 0, 1] })).answers
    const mixed = await post('/learn', [
      { id: expired.id, label: 'yes' },
      { id: given.id, label: 'no' },
      { id: '1-99', label: 'no' },
      { label: 'no', features: [0, 1, 0, 0] }
    ])
    assert.equal(mixed.status, 200)
    assert.deepEqual(
      mixed.answers.map(({ code }) => code),
      ['ERR_LABEL_LATE', undefined, 'ERR_LABEL_LATE', undefined]
    )
    assert.equal((await post('/learn', { id: given.id, label: 'no' })).status, 410)
    const malformed = await post('/learn', [{ id: given.id, label: 'perhaps' }])
    assert.equal(malformed.status, 400)
    assert.match(malformed.text, /perhaps.* is not among the class names/)
    assert.equal((await statusAfter(2)).inputs, 2)
  })

  it('may have the name of their column', async () => {
    const columns = [{ name: 'age', kind: 'number' }] as const
    const features = { ...SPEC.features, label: 'bought', columns }
    await serve(60_000, { ...SPEC, dimension: 1, features } as LearningSpec)
    const [first, second] = (await post('/predict', [{ age: 3 }, { age: 4 }])).answers
    const bodies = [
      { id: first.id, bought: 'yes' },
      { id: second.id, label: 'no' }
    ]
    assert.deepEqual((await post('/learn', bodies)).answers, [first, second])
    assert.equal((await statusAfter(2)).inputs, 2)
  })

  it('are not expected without a delay', async () => {
    served = await PeerServer.start()
    contract = await OpenApiContract.of(served.url)
    assert.equal((await post('/predict', { features: [0, 0, 0, 1] })).answers[0].id, undefined)
    assert.equal((await post('/learn', { id: '1-1', label: 'yes' })).status, 400)
  })
})
