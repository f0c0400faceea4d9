/** A rule for each layer: layers step as models of their own, neighbours have the bits of the maker, and errors name the layers. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { AdmbNode, startingPredictor } from '../../../src/admb/index.js'
import {
  averagingRule,
  createAveraging,
  createRule,
  digest,
  isBlockwise,
  isDual,
  LocalSteps,
  latticeRecipe,
  type RuleSpec,
  roundedRecipe,
  ruleOfLayer,
  type SingleRuleSpec,
  stateBlockIndices,
  zeros
} from '../../../src/learning/index.js'
import type { Blocks, Layout, RuleState } from '../../../src/learning/types.js'
import { assertCompatible } from '../../../src/network/hello.js'
import { learningParts } from '../../../src/task/learning-parts.js'
import type { ProgramSpec } from '../../../src/task/learning-spec.js'
import { learningSpecFields, specText } from '../../../src/task/spec-text.js'
import { createPeerTask } from '../../../src/task/task.js'
import { share } from '../../support/runs.js'

const layout: Layout = {
  blocks: [
    { name: 'words', kind: 'embedding', length: 5 },
    { name: 'block0.attention', kind: 'attention', length: 4 },
    { name: 'block0.mlp', kind: 'mlp', length: 3, vectors: [[2, 3]] },
    { name: 'block1.attention', kind: 'attention', length: 4 }
  ]
}
const partOf = (indices: readonly number[]): Layout => ({ blocks: indices.map(k => layout.blocks[k]) })

const rules = fc.constantFrom<SingleRuleSpec>(
  { name: 'adagrad', step: 0.1 },
  { name: 'adagrad', maxLossDecrease: 0.01, maxForget: 0.1 },
  { name: 'momentum', radius: 0.5 },
  { name: 'adam', bits: 8 },
  { name: 'adamw', decay: 0.2, warmup: 2 },
  { name: 'adamw', clip: 0.1 },
  { name: 'lamb' },
  { name: 'lars' }
)
/** Patterns with the layers that have them as their first one, if all are given in this order. */
const PATTERNS = [
  ['embedding', [0]],
  ['block*.att*tion', [1, 3]],
  ['*', [2]]
] as const
const chosen = fc.tuple(rules, rules, rules)
const specOf = (singles: readonly SingleRuleSpec[]): RuleSpec => ({
  name: 'layers',
  rules: PATTERNS.map(([layers], n) => ({ layers, rule: singles[n] }))
})

const number = fc.integer({ min: -512, max: 512 }).map(whole => whole / 256)
const blocks = fc
  .tuple(...layout.blocks.map(({ length }) => fc.array(number, { minLength: length, maxLength: length })))
  .map(all => all.map(block => Float32Array.from(block)))
const updates = fc.array(fc.record({ sum: blocks, count: fc.integer({ min: 1, max: 99 }) }), { maxLength: 6 })
type Update = { readonly sum: Blocks; readonly count: number }

function learn(spec: RuleSpec, part: Layout, initial: Blocks, all: readonly Update[]): RuleState {
  const rule = createRule(spec, part)
  let now: RuleState = { parameters: initial, state: zeros(rule.stateLayout(part)) }
  for (const [i, { sum, count }] of all.entries()) now = rule.step(now, sum, count, i)
  return now
}

describe('a rule for each layer', () => {
  it('steps the layers of each rule as a model of their own', () => {
    fc.assert(
      fc.property(chosen, blocks, updates, (singles, initial, all) => {
        const spec = specOf(singles)
        const { parameters, state } = learn(spec, layout, initial, all)
        const alone = PATTERNS.map(([, indices], n) => {
          const pick = (of: Blocks) => indices.map(k => of[k])
          const own = all.map(({ sum, count }) => ({ sum: pick(sum), count }))
          const found = learn(singles[n], partOf(indices), pick(initial), own)
          assert.deepEqual(pick(parameters), found.parameters)
          return found.state
        })
        const expected: Blocks = alone.flat()
        assert.deepEqual(state, expected)
        if (!isBlockwise(spec)) return
        // The parameter server steps single layers, each with the state that the whole rule keeps for it.
        for (const [k, positions] of stateBlockIndices(createRule(spec, layout), layout).entries()) {
          const sums = all.map(({ sum, count }): Update => ({ sum: [sum[k]], count }))
          const own: RuleState = { parameters: [parameters[k]], state: positions.map(position => state[position]) }
          assert.deepEqual(learn(ruleOfLayer(spec, layout.blocks[k]), partOf([k]), [initial[k]], sums), own)
        }
      }),
      { numRuns: share(300) }
    )
  })

  it('is replayed with the bits of its maker, with float32 and with integer sums', () => {
    fc.assert(
      fc.property(chosen, updates, fc.boolean(), (singles, all, isLattice) => {
        const plain = { rule: createRule(specOf(singles), layout), averaging: createAveraging(), digest }
        const recipe = isLattice ? roundedRecipe(latticeRecipe(plain, { batch: 4 }), layout, 4) : plain
        const initial = startingPredictor(zeros(layout), recipe)
        const [a, b] = ['a', 'b'].map(
          self => new AdmbNode({ ...recipe, self, incarnation: 1, layout, initial, batch: 4 })
        )
        const exchange = () => {
          for (let turn = 0; turn < 4; turn++) {
            const [from, to] = turn % 2 === 0 ? [a, b] : [b, a]
            from.tick()
            for (let frame = from.frame(1); frame; frame = from.frame(1)) to.receive(1, frame)
          }
        }
        a.connect(1, 1, 'b')
        b.connect(1, 1, 'a')
        for (const [i, { sum }] of all.entries()) {
          for (const node of [a, b]) {
            for (const [k, block] of sum.entries()) for (const [i, g] of block.entries()) node.accumulator[k][i] += g
            node.added(2)
          }
          exchange()
          assert.deepEqual(a.predictor.id, b.predictor.id)
          assert.deepEqual(a.predictor.state, b.predictor.state)
          assert.equal(a.predictor.id.updates, i + 1)
        }
      }),
      { numRuns: share(100) }
    )
  })

  it('makes local steps', () => {
    fc.assert(
      fc.property(chosen, updates, (singles, all) => {
        const rule = createRule(specOf(singles), layout)
        const options = { batch: 4, steps: 4 }
        const averaging = averagingRule(rule, options)
        assert.match(averaging.description, /^embedding:.* local-steps\(4\)$/)
        assert.ok((averaging.firstSquare ?? 0) > 0)
        const carried = { name: 'carried', length: 8, isExact: true }
        const blocks = [...layout.blocks, carried]
        const whole = createRule(specOf(singles), { blocks })
        const local = new LocalSteps(whole, options, { blocks })
        let now: RuleState = { parameters: zeros(layout), state: zeros(rule.stateLayout(layout)) }
        const predictor = { id: { updates: 0 }, parameters: zeros({ blocks }) }
        for (const [i, { sum }] of all.slice(0, 3).entries()) {
          local.parameters(predictor)
          for (const [k, block] of local.accumulator.entries()) block.set(sum[k])
          local.added(1, zeros(layout))
          now = rule.step(now, sum, 1, i)
          assert.deepEqual(local.parameters(predictor), now.parameters)
        }
      }),
      { numRuns: share(100) }
    )
  })

  it('fits names as regular expressions with .* do', () => {
    const word = (letters: string) => fc.string({ unit: fc.constantFrom(...letters), maxLength: 7 })
    fc.assert(
      fc.property(word('ab*'), word('ab'), (layers, name) => {
        const isFit = new RegExp(`^${layers.replaceAll('*', '.*')}$`).test(name)
        const spec = { name: 'layers', rules: [{ layers, rule: { name: 'adam' } }] } as const
        const found = () => ruleOfLayer(spec, { name, length: 1 })
        if (isFit) assert.equal(found().name, 'adam')
        else assert.throws(found, /has none/)
      }),
      { numRuns: share(4000) }
    )
  })

  it('names the layers in errors', async () => {
    const adam: SingleRuleSpec = { name: 'adam' }
    const fails = (rules: readonly (readonly [string, SingleRuleSpec])[], message: RegExp) => {
      const spec = { name: 'layers', rules: rules.map(([layers, rule]) => ({ layers, rule })) } as const
      assert.throws(() => createRule(spec, layout), { name: 'OptionError', message })
    }
    const all = /words \(embedding\), block0.attention \(attention\), block0.mlp \(mlp\), block1.attention/
    fails(
      [
        ['conv', adam],
        ['*', adam]
      ],
      all
    )
    fails([['embedding', adam]], /the layer block0.attention \(attention\) has none: add one for the rest, such as \*:/)
    fails(
      [
        ['*', adam],
        ['mlp', adam]
      ],
      /earlier entries fit all layers of 'mlp': put it before them, or remove it/
    )
    // A comma in the place of a semicolon.
    fails([['embedding:adam,*', adam]], /no layer that is trained fits 'embedding:adam,\*': give names/)
    fails([['*', { name: 'adam', step: -1 }]], /rule adam: step must be a number above 0/)
    fails([], /give rules: \[\{ layers: 'embedding'/)
    fails([['*', { name: 'layers' } as never]], /give rules/)
    assert.throws(() => createRule(specOf([adam, adam, adam])).step({ parameters: [], state: [] }, [], 1, 0), {
      message: /needs the layers of a network/
    })
    const external: ProgramSpec = {
      ...{ model: 'external', dimension: 0, batch: 4, averaging: { name: 'none' } },
      ...{ features: { constant: false, scale: 'none' }, rule: specOf([adam, adam, adam]) },
      program: { blocks: [{ name: '0.weight', length: 4 }], start: '', fingerprint: '' }
    }
    await assert.rejects(learningParts(external), { message: /fits 'embedding': give .* of 0\.weight$/ })
    assert.deepEqual([isDual(specOf([adam, { name: 'dual-averaging' }, adam])), isDual(adam)], [true, false])
  })

  it('is one field that peers compare; the spec of one rule is as before', async () => {
    const taskOf = async (rule: RuleSpec) =>
      (await createPeerTask({ model: { model: 'mlp', hidden: [4] }, features: 3, classes: 2, rule })).spec
    const helloOf = async (rule: RuleSpec) => ({ protocol: 1, fields: learningSpecFields(await taskOf(rule)) })
    const output = (step: number): RuleSpec => ({
      name: 'layers',
      rules: [
        { layers: 'output', rule: { name: 'momentum', step } },
        { layers: '*', rule: { name: 'adam' } }
      ]
    })
    const ours = await helloOf(output(0.1))
    assert.doesNotThrow(() => assertCompatible('P', ours, ours))
    const theirs = await helloOf(output(0.2))
    const message = /peer P has rule output:momentum\(step=0\.2,.*;\*:adam\(.*, this peer output:momentum\(step=0\.1,/
    assert.throws(() => assertCompatible('P', ours, theirs), { message })
    const spec = await taskOf({ step: 0.5, name: 'adam' })
    assert.match(specText(spec), /"rule":\{"name":"adam","step":0\.5\},"averaging"/)
    const [, description] = learningSpecFields(spec).find(([field]) => field === 'rule') ?? []
    assert.equal(description, 'adam(step=0.5,beta1=0.9,beta2=0.999,epsilon=1e-8) lattice')
    await assert.rejects(createPeerTask({ features: 3, classes: 2, rule: output(1) }), {
      message: /a rule for each layer is for networks: give a network/
    })
  })
})
