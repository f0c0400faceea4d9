/** Two learner loops: `b` keeps its inputs, and `a` audits the sums that it receives from `b`. */
import assert from 'node:assert/strict'
import { isFragment } from '../../../src/admb/index.js'
import type { Learner } from '../../../src/learner/index.js'
import type { KeptAnswer } from '../../../src/peer/kept-inputs.js'
import { LearnerLoop } from '../../../src/peer/learner-loop.js'
import type { SumAudit, TakenSum } from '../../../src/peer/sum-audit.js'
import type { FromLearner, ToLearner } from '../../../src/peer/thread-messages.js'
import { createParser, type Rows } from '../../../src/streams/index.js'
import { type LearningParts, type LinearSpec, linearParts } from '../../../src/task/learning-spec.js'
import { learnerInit } from '../../support/learner-init.js'

const SPEC: LinearSpec = {
  model: 'logistic',
  dimension: 3,
  rule: { name: 'adagrad' },
  averaging: { name: 'uniform' },
  batch: 100,
  features: { constant: false, scale: 'none' }
}

function rows(from: number, to: number): Rows {
  const line = (i: number) =>
    `{"label": ${i % 3 === 0 ? 1 : 0}, "features": [${Math.sin(i)}, ${Math.cos(3 * i)}, ${i % 3 === 0 ? 1 : -0.5}]}\n`
  const text = Array.from({ length: to - from }, (_, i) => line(from + i)).join('')
  return createParser('jsonl', { dimension: 3 }).push(Buffer.from(text))
}

class Node {
  readonly loop: LearnerLoop
  #messages: FromLearner[] = []
  #learned = 0

  constructor(self: string, spec: LinearSpec, carry: number, parts = linearParts(spec)) {
    const init = learnerInit({ self, spec, carry, stream: undefined, keepsInputs: true })
    this.loop = new LearnerLoop(
      init,
      parts,
      message => this.#messages.push(message),
      () => 0
    )
  }

  learn(count: number): void {
    this.loop.requests.answer(rows(this.#learned, this.#learned + count), true)
    this.#learned += count
  }

  /** What the other node receives, in order. */
  takeSent(): ToLearner[] {
    const sent = this.#messages.flatMap((message): ToLearner[] => {
      if (message.kind === 'consumed') return [{ kind: 'writable', edge: 1 }]
      if (message.kind !== 'frame') return []
      return [{ kind: isFragment(message.bytes) ? 'fragment' : 'frame', edge: 1, bytes: message.bytes }]
    })
    this.#messages = []
    return sent
  }

  ask<K extends FromLearner['kind']>(message: ToLearner, kind: K): Extract<FromLearner, { kind: K }> {
    this.loop.receive(message)
    const answer = this.#messages.find((one): one is Extract<FromLearner, { kind: K }> => one.kind === kind)
    assert.ok(answer)
    this.#messages = this.#messages.filter(one => one !== answer)
    return answer
  }
}

/** Two linked nodes, of which `b` may compute its gradients in another way. */
class Pair {
  readonly a: Node
  readonly b: Node

  constructor({
    spec = SPEC,
    carry = 8,
    hostile = linearParts(spec)
  }: { spec?: LinearSpec; carry?: number; hostile?: LearningParts }) {
    this.a = new Node('a', spec, carry)
    this.b = new Node('b', spec, carry, hostile)
    this.a.loop.receive({ kind: 'connect', edge: 1, peer: 'b' })
    this.b.loop.receive({ kind: 'connect', edge: 1, peer: 'a' })
  }

  /** Delivers the messages of this period. Those that follow from them arrive in the next one. */
  exchange(): void {
    this.a.loop.tick()
    this.b.loop.tick()
    const [fromA, fromB] = [this.a.takeSent(), this.b.takeSent()]
    for (const message of fromA) this.b.loop.receive(message)
    for (const message of fromB) this.a.loop.receive(message)
  }

  /** Both learn for some periods. */
  run(periods: number): void {
    for (let i = 0; i < periods; i++) {
      this.a.learn(3)
      this.b.learn(5)
      this.exchange()
    }
  }

  /** Of the predictor that the auditing peer holds. */
  get updates(): number {
    return this.a.loop.status().predictor.updates
  }

  take(): TakenSum | undefined {
    return this.a.ask({ kind: 'take-sum', id: 0, edge: 1 }, 'sum').sum
  }

  inputs({ predictor, known, seed, contributors: [{ incarnation, nonce, segments }] }: TakenSum): KeptAnswer {
    const asked = { predictor, incarnation, nonce, segments, known, seed }
    const { inputs } = this.b.ask({ kind: 'answer-audit', id: 1, asked, permits: true }, 'audit-answer').answer
    // As it crosses the network.
    return JSON.parse(JSON.stringify(inputs)) as KeptAnswer
  }

  compare(answers: readonly KeptAnswer[]): SumAudit {
    const message = { kind: 'compare-sum', id: 2, answers: answers.map(inputs => ({ inputs })) } as const
    return this.a.ask(message, 'compared').audit as SumAudit
  }

  /** Audits the sums of the next periods. */
  audits(periods: number, inputs = (taken: TakenSum) => this.inputs(taken)): SumAudit[] {
    const audits: SumAudit[] = []
    for (let i = 0; i < periods; i++) {
      this.run(1)
      const taken = this.take()
      if (taken) audits.push(this.compare([inputs(taken)]))
    }
    return audits
  }
}

/** A node whose gradients are not those of its inputs. */
function distorted(spec: LinearSpec, distort: (gradient: Float32Array) => void): LearningParts {
  const parts = linearParts(spec)
  const { learner } = parts
  const other: Learner = {
    layout: learner.layout,
    outputs: learner.outputs,
    classifies: true,
    initial: () => learner.initial(),
    score: (...given) => learner.score(...given),
    predict: (...given) => learner.predict(...given),
    addGradient: (parameters, examples, from, to, sum) => {
      const own = learner.layout.blocks.map(({ length }) => new Float32Array(length))
      learner.addGradient(parameters, examples, from, to, own)
      distort(own[0])
      for (const [b, block] of own.entries()) for (let i = 0; i < block.length; i++) sum[b][i] += block[i]
    }
  }
  return { ...parts, learner: other }
}

describe('audits of sums', function () {
  this.timeout(20_000)
  const kinds: Record<string, LinearSpec> = {
    'float32 sums': SPEC,
    'integer sums': { ...SPEC, sums: 'lattice' },
    'bounded integer sums': { ...SPEC, sums: 'lattice', influence: 'bounded' },
    'sums with class weights': { ...SPEC, classWeights: [1, 4] }
  }
  for (const [name, spec] of Object.entries(kinds)) {
    it(`confirm ${name} of an honest peer, with inputs that were carried over`, () => {
      const pair = new Pair({ spec })
      pair.run(30)
      pair.audits(8)
      let carried = 0
      const audits = pair.audits(150, taken => {
        const inputs = pair.inputs(taken)
        if ('groups' in inputs && inputs.groups.length > 1) carried++
        return inputs
      })
      assert.ok(carried > 2)
      assert.ok(audits.length >= 20)
      for (const audit of audits) {
        assert.equal(audit.agrees, true, JSON.stringify(audit))
        const [{ id, inputs, loss = Number.NaN, labels = [] }] = audit.contributors
        assert.deepEqual([id, inputs, labels.reduce((sum, label) => sum + label)], ['b', audit.count, audit.count])
        assert.ok(loss > 0 && loss < 1)
      }
      const counts = new Set(audits.map(({ contributors: [{ segments }] }) => segments))
      assert.ok(counts.size > 2)
    })
  }

  const distortions: Record<string, (gradient: Float32Array) => void> = {
    'that are reversed': gradient => gradient.set(gradient.map(value => -value)),
    'that are too large': gradient => gradient.set(gradient.map(value => 3 * value)),
    'that are constant': gradient => void gradient.fill(0.5)
  }
  for (const [name, distort] of Object.entries(distortions)) {
    it(`find gradients ${name}`, () => {
      const spec: LinearSpec = { ...SPEC, sums: 'lattice' }
      const pair = new Pair({ spec, hostile: distorted(spec, distort) })
      pair.run(30)
      const audits = pair.audits(80).filter(({ agrees }) => agrees !== null)
      assert.ok(audits.length >= 8)
      const found = audits.filter(({ agrees }) => agrees === false)
      assert.ok(found.length > 0.8 * audits.length, `${found.length} of ${audits.length}`)
      assert.ok(found.every(({ reason }) => reason === 'the gradients of the inputs have another sum'))
    })
  }

  it('find more gradients than inputs', () => {
    const pair = new Pair({})
    pair.run(10)
    const withoutOne = (taken: TakenSum): KeptAnswer => {
      const answer = pair.inputs(taken)
      assert.ok('groups' in answer)
      const { rows: arrays, ...group } = answer.groups[0]
      const size = group.size - 1
      const shorter = Object.fromEntries(
        Object.entries(arrays).map(([name, { type, values }]) => [
          name,
          { type, values: values.slice(0, name === 'offsets' ? size + 1 : name === 'labels' ? size : undefined) }
        ])
      )
      return { groups: [{ ...group, size, rows: shorter }, ...answer.groups.slice(1)] }
    }
    const audits = pair.audits(20, withoutOne).filter(({ agrees }) => agrees !== null)
    assert.ok(audits.length > 0)
    for (const { agrees, reason, count } of audits) {
      assert.equal(agrees, false)
      assert.equal(reason, `${count} gradients of ${count - 1} inputs`)
    }
  })

  it('cover sums that an update has used at once', () => {
    const pair = new Pair({ spec: { ...SPEC, batch: 30 } })
    pair.take()
    let used = 0
    for (let i = 0; i < 40; i++) {
      pair.run(1)
      const taken = pair.take()
      if (taken === undefined || taken.predictor.updates === pair.updates) continue
      used++
      assert.equal(pair.compare([pair.inputs(taken)]).agrees, true)
    }
    assert.ok(used > 0)
  })

  it('give no verdict without all inputs, and say why', () => {
    const pair = new Pair({})
    pair.run(10)
    const [first] = pair.audits(8, () => ({ reason: 'this peer is not among its auditors' }))
    assert.deepEqual([first.agrees, first.contributors[0].reason], [null, 'this peer is not among its auditors'])
    const asked = { predictor: first.predictor, incarnation: 1, nonce: 0, segments: 1, known: [], seed: 0 }
    const answer = (given: Partial<typeof asked>) =>
      pair.b.ask({ kind: 'answer-audit', id: 1, asked: { ...asked, ...given }, permits: true }, 'audit-answer').answer
        .inputs
    assert.deepEqual(answer({ nonce: 1 }), { reason: 'it no longer keeps the inputs of this sum' })
    const many = answer({ segments: 1000 })
    assert.match('reason' in many ? many.reason : '', /^it has made only \d+ of the 1000 segments$/)
    pair.run(400)
    assert.deepEqual(answer({}), { reason: 'it no longer keeps the inputs of this sum' })
  })

  it('give no verdict about an input that does not fit the model', () => {
    const pair = new Pair({})
    pair.run(10)
    const [{ agrees, contributors }] = pair.audits(8, ({ predictor }) => ({
      groups: [
        {
          predictor,
          size: 1,
          rows: {
            labels: { type: 'float', values: [1] },
            offsets: { type: 'int', values: [0, 1] },
            indices: { type: 'int', values: [7] },
            values: { type: 'float', values: [1] }
          }
        }
      ]
    }))
    assert.equal(agrees, null)
    assert.match(contributors[0].reason ?? '', /does not fit the model/)
  })
})
