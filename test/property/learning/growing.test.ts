/** Nodes that learn a softmax model whose classes are added while they learn, through cuts and repairs. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AdmbNode, type Predictor, startingPredictor } from '../../../src/admb/index.js'
import {
  addedClasses,
  ClassTable,
  carryingRecipe,
  createAveraging,
  createLearner,
  createRule,
  digest,
  extendsTable,
  type Learner,
  propose
} from '../../../src/learning/index.js'
import { examplesOf } from '../../support/learning/rows.js'
import { share } from '../../support/runs.js'

const NAMED = ['a', 'b']
const NEW = ['x', 'y', 'z']
const ALL = [...NAMED, ...NEW]
const CLASSES = 4
const NODES = 4

type Action =
  | { readonly kind: 'learn'; readonly node: number; readonly name: number }
  | { readonly kind: 'tick' | 'cut' | 'join' | 'exchange'; readonly node: number }

const node = fc.nat({ max: NODES - 1 })
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('learn' as const), node, name: fc.nat({ max: 4 }) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('tick' as const, 'exchange' as const), node }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('cut' as const, 'join' as const), node }) }
)

/** A model with room for more classes. */
function partsOf(isAdaptive: boolean) {
  const model = { model: 'softmax', dimension: ALL.length, classes: CLASSES, named: NAMED.length } as const
  const spec = isAdaptive ? ({ name: 'adagrad' } as const) : ({ name: 'momentum', step: 0.5 } as const)
  const recipe = { rule: createRule(spec), averaging: createAveraging(), digest }
  const learner = createLearner(model)
  return { learner, recipe: carryingRecipe(recipe, [new ClassTable(NAMED, CLASSES - NAMED.length, learner.layout)]) }
}

/** A line of nodes; edge i is between node i and node i + 1. */
class Line {
  readonly nodes: readonly AdmbNode[]
  readonly #isUp = Array.from({ length: NODES - 1 }, () => false)
  readonly #sessions = Array.from({ length: NODES - 1 }, () => 0)
  /** Tables by predictor. */
  readonly tables = new Map<string, Float32Array>()

  readonly #learner: Learner

  constructor(carry: number, isAdaptive: boolean) {
    const { learner, recipe } = partsOf(isAdaptive)
    this.#learner = learner
    const initial = startingPredictor(learner.initial(), recipe)
    this.nodes = Array.from(
      { length: NODES },
      (_, i) =>
        new AdmbNode({
          ...recipe,
          self: `node${i}`,
          incarnation: 1,
          layout: learner.layout,
          initial,
          batch: 3,
          carry,
          carries: (from, to) => extendsTable(from.parameters[1], to.parameters[1])
        })
    )
    for (let edge = 0; edge < NODES - 1; edge++) this.act({ kind: 'join', node: edge })
  }

  act({ kind, node: number, ...rest }: Action): void {
    const edge = Math.min(number, NODES - 2)
    const ends = [this.nodes[edge], this.nodes[edge + 1]] as const
    if (kind === 'learn') this.#learn(this.nodes[number], ALL[(rest as { name: number }).name])
    if (kind === 'tick') this.nodes[number].tick()
    if (kind === 'cut' && this.#isUp[edge]) for (const end of ends) end.disconnect(edge)
    if (kind === 'cut') this.#isUp[edge] = false
    if (kind === 'join' && !this.#isUp[edge]) {
      this.#isUp[edge] = true
      this.#sessions[edge]++
      ends[0].connect(edge, this.#sessions[edge], `node${edge + 1}`)
      ends[1].connect(edge, this.#sessions[edge], `node${edge}`)
    }
    if (kind === 'exchange' && this.#isUp[edge]) {
      for (const [from, to] of [ends, [ends[1], ends[0]] as const]) {
        const frame = from.frame(edge)
        if (frame !== undefined) to.receive(edge, frame)
      }
    }
    for (const one of this.nodes) this.#check(one)
  }

  #learn(one: AdmbNode, name: string): void {
    const { parameters, id } = one.predictor
    const label = [...NAMED, ...addedClasses(parameters[1])].indexOf(name)
    if (label < 0) propose(one.accumulator[1], name, id.updates)
    else {
      const rows = examplesOf([{ label, features: [[ALL.indexOf(name), 1]] }])
      this.#learner.addGradient(parameters, rows, 0, 1, one.accumulator)
    }
    one.added(1)
  }

  /** The feature of a name increases the score of its own class only: no gradient counts for another class. */
  #check(one: AdmbNode): void {
    for (const effect of one.takeEffects()) {
      assert.notEqual(effect.kind, 'refused')
      if (effect.kind === 'updated') this.#checkLineage(effect.predictor, effect.header.parent.digest)
    }
    const { parameters, average } = one.predictor
    assert.deepEqual(addedClasses(average[1]), addedClasses(parameters[1]))
    const names = [...NAMED, ...addedClasses(parameters[1])]
    assert.equal(new Set(names).size, names.length)
    for (const [feature, name] of ALL.entries()) {
      for (let c = 0; c < CLASSES; c++) {
        const weight = parameters[0][feature * CLASSES + c]
        assert.ok(weight <= 0 || names[c] === name, `${name} increases the score of ${names[c] ?? 'no class'}`)
      }
    }
  }

  #checkLineage({ id, parameters }: Predictor, parent: string): void {
    this.tables.set(id.digest, parameters[1])
    const before = this.tables.get(parent)
    if (before !== undefined) assert.ok(extendsTable(before, parameters[1]), 'a class was renumbered')
  }
}

describe('classes that are added', () => {
  it('have the same number for all nodes of a predictor, and no gradient counts for another class', () => {
    fc.assert(
      fc.property(
        fc.array(action, { minLength: 50, maxLength: 250 }),
        fc.constantFrom(0, 3, 16),
        fc.boolean(),
        (actions, carry, isAdaptive) => {
          const line = new Line(carry, isAdaptive)
          for (const one of actions) line.act(one)
        }
      ),
      { numRuns: share(400) }
    )
  })

  it('are agreed on after the network is repaired', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 100 }), fc.boolean(), (actions, isAdaptive) => {
        const line = new Line(16, isAdaptive)
        for (const one of actions) line.act(one)
        for (let edge = 0; edge < NODES - 1; edge++) line.act({ kind: 'join', node: edge })
        for (let round = 0; round < 60; round++) {
          for (let i = 0; i < NODES; i++) {
            if (round < 30) line.act({ kind: 'learn', node: i, name: 2 + ((round + i) % 3) })
            line.act({ kind: 'tick', node: i })
            line.act({ kind: 'exchange', node: i })
          }
        }
        const [first, ...others] = line.nodes.map(({ predictor }) => addedClasses(predictor.parameters[1]))
        assert.equal(first.length, 2)
        for (const other of others) assert.deepEqual(other, first)
      }),
      { numRuns: share(80) }
    )
  })
})
