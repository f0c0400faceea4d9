import assert from 'node:assert/strict'
import { zeros } from '../../../src/learning/engines/working-content.js'
import { OptionError } from '../../../src/learning/options.js'
import { createRule, type RuleSpec, ruleNames, rules } from '../../../src/learning/rules/index.js'
import type { Layout, RuleState, UpdateRule } from '../../../src/learning/types.js'
import { randomFrom } from '../../support/learning/rows.js'

const layout: Layout = {
  blocks: [
    { name: 'a', length: 3 },
    { name: 'b', length: 2 }
  ]
}

interface Batch {
  readonly sum: readonly Float32Array[]
  readonly count: number
}

function batches(length: number, seed = 1): Batch[] {
  const random = randomFrom(seed)
  return Array.from({ length }, () => ({
    sum: zeros(layout).map(block => block.map(() => 8 * random() - 3)),
    count: 1 + Math.floor(8 * random())
  }))
}

function replay(rule: UpdateRule, run: readonly Batch[]): RuleState {
  let now: RuleState = { parameters: zeros(layout), state: zeros(rule.stateLayout(layout)) }
  run.forEach(({ sum, count }, updates) => {
    now = rule.step(now, sum, count, updates)
  })
  return now
}

/** The gradients of one coordinate, and an independent computation of its final weight. */
type Reference = (sums: readonly number[], counts: readonly number[]) => number

function assertFollows(spec: RuleSpec, reference: Reference): void {
  const run = batches(40)
  const { parameters } = replay(createRule(spec), run)
  parameters.forEach((block, k) => {
    block.forEach((w, i) => {
      const expected = reference(
        run.map(({ sum }) => sum[k][i]),
        run.map(({ count }) => count)
      )
      assert.ok(Math.abs(w - expected) <= 2e-5 * (1 + Math.abs(expected)), `${spec.name}: ${w} against ${expected}`)
    })
  })
}

const specs: readonly RuleSpec[] = [
  ...ruleNames.map(name => ({ name })),
  { name: 'mirror-descent', geometry: 'entropic' },
  { name: 'adam', bits: 8 },
  { name: 'lamb', bits: 8 },
  { name: 'adamw', bits: 8, layerClip: 0.3 },
  { name: 'adamw', layerClip: 0.3, clip: 0.5, warmup: 4, schedule: 'cosine', total: 20 },
  ...ruleNames.filter(name => 'radius' in rules[name].options).map(name => ({ name, radius: 0.01 }) as RuleSpec)
]

describe('update rules', () => {
  for (const spec of specs) {
    const rule = createRule(spec)

    if (rule.stepInPlace !== undefined) {
      it(`${rule.description} gives the same bits in place`, () => {
        const run = batches(30)
        const now = { parameters: zeros(layout), state: zeros(rule.stateLayout(layout)) }
        for (const [updates, { sum, count }] of run.entries()) rule.stepInPlace?.(now, sum, count, updates)
        assert.deepEqual(now, replay(rule, run))
      })
    }

    it(`${rule.description} is pure and replays to equal bits`, () => {
      const run = batches(30)
      const copies = run.map(({ sum }) => sum.map(block => block.slice()))
      const before = replay(rule, run.slice(0, 10))
      const frozen = [...before.parameters, ...before.state].map(block => block.slice())
      const again = rule.step(before, run[10].sum, run[10].count, 10)
      assert.deepEqual([...before.parameters, ...before.state], frozen)
      assert.deepEqual(
        run.map(({ sum }) => sum),
        copies
      )
      for (const block of [...again.parameters, ...again.state])
        assert.ok(![...before.parameters, ...before.state, ...run[10].sum].includes(block))
      assert.deepEqual(replay(rule, run), replay(rule, run))
    })

    it(`${rule.description} keeps a state of the declared layout`, () => {
      const { state } = replay(rule, batches(3))
      assert.deepEqual(
        state.map(block => block.length),
        rule.stateLayout(layout).blocks.map(block => block.length)
      )
      assert.ok(state.every(block => block.every(Number.isFinite)))
    })
  }

  /** Of one coordinate that decays by 0.1, with step sizes and factors of the gradients of each update. */
  const adamWBy =
    (steps: (j: number) => number, decay: number): Reference =>
    (sums, counts) => {
      let [w, m, v] = [0, 0, 0]
      sums.forEach((sum, j) => {
        const g = sum / counts[j]
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        w *= 1 - steps(j) * decay
        w -= (steps(j) * (m / (1 - 0.9 ** (j + 1)))) / (Math.sqrt(v / (1 - 0.999 ** (j + 1))) + 1e-8)
      })
      return w
    }

  it('AdamW follows its recurrence', () => {
    assertFollows(
      { name: 'adamw', step: 0.1, decay: 0.3 },
      adamWBy(() => 0.1, 0.3)
    )
  })

  it('AdamW warms up and falls as the schedules of transformers', () => {
    const rest = { name: 'adamw', step: 0.1, decay: 0, warmup: 10, total: 30 } as const
    const passed = (j: number) => Math.min(1, (j - 10) / 20)
    assertFollows(
      { ...rest, schedule: 'linear' },
      adamWBy(j => 0.1 * (j < 10 ? j / 10 : 1 - passed(j)), 0)
    )
    const cosine = (j: number) => (1 + Math.cos(Math.PI * passed(j))) / 2
    assertFollows(
      { ...rest, schedule: 'cosine' },
      adamWBy(j => 0.1 * (j < 10 ? j / 10 : cosine(j)), 0)
    )
    assert.throws(() => createRule({ name: 'adamw', schedule: 'linear' }), { message: /linear needs total/ })
  })

  it('a reference batch is part of the description; a way of scaling needs it', () => {
    const descriptions = [{}, { reference: 32 }, { reference: 32, scaling: 'linear' } as const].map(
      options => createRule({ name: 'adamw', ...options }).description
    )
    assert.equal(new Set(descriptions).size, 3)
    assert.match(descriptions[2], /,reference=32,scaling=linear\)$/)
    assert.throws(() => createRule({ name: 'momentum', scaling: 'root' }), { message: /scaling=root needs reference/ })
  })

  it('AdamW decays neither biases nor norms', () => {
    const rule = createRule(
      { name: 'adamw', step: 0.1, decay: 1 },
      { blocks: [{ name: 'a', length: 4, vectors: [[1, 3]] }] }
    )
    const state = zeros(rule.stateLayout({ blocks: [{ name: 'a', length: 4 }] }))
    const { parameters } = rule.step({ parameters: [Float32Array.of(1, 1, 1, 1)], state }, [new Float32Array(4)], 1, 0)
    assert.deepEqual(parameters, [Float32Array.of(0.9, 1, 1, 0.9)])
  })

  it('AdamW clips the mean gradient of all blocks, or of each', () => {
    const run = batches(1)
    const [{ sum, count }] = run
    const norm = (blocks: readonly Float32Array[]) => Math.hypot(...blocks.flatMap(block => [...block])) / count
    const scaled = (factors: readonly number[]) => [
      { count, sum: sum.map((block, k) => block.map(g => g * Math.min(1, factors[k]))) }
    ]
    // An ε that is large compared to the gradients lets the scale of the gradients show.
    const given = { name: 'adamw', epsilon: 10 } as const
    const after = (spec: RuleSpec, batch: readonly Batch[]) =>
      replay(createRule(spec), batch).parameters.flatMap(w => [...w])
    const close = (a: readonly number[], b: readonly number[]) =>
      a.forEach((w, i) => {
        assert.ok(Math.abs(w - b[i]) < 1e-9, `${w}, not ${b[i]}`)
      })
    const all = 0.5 / norm(sum)
    close(after({ ...given, clip: 0.5 }, run), after(given, scaled([all, all])))
    close(after({ ...given, layerClip: 0.5 }, run), after(given, scaled(sum.map(block => 0.5 / norm([block])))))
  })

  it('AdaGrad follows its recurrence', () => {
    assertFollows({ name: 'adagrad', step: 0.1, initial: 0.5, growth: 0.3 }, (sums, counts) => {
      let [w, squares] = [0, 0.5]
      sums.forEach((sum, j) => {
        const h = sum / counts[j] ** 0.5
        squares += h ** 2
        w -= (Math.max(0.1, 0.3 * Math.abs(w)) * h) / squares ** 0.5
      })
      return w
    })
  })

  it('AdaGrad without growth is the original rule', () => {
    assertFollows({ name: 'adagrad', step: 0.1, initial: 1e-9, growth: 0 }, (sums, counts) => {
      let [w, squares] = [0, 0]
      sums.forEach((sum, j) => {
        squares += sum ** 2 / counts[j]
        w -= (0.1 * sum) / Math.sqrt(counts[j] * squares)
      })
      return w
    })
  })

  const total = (counts: readonly number[], to: number) => counts.slice(0, to).reduce((a, b) => a + b, 0)

  it('dual averaging is the closed form over all gradients', () => {
    assertFollows({ name: 'dual-averaging', L: 0.5, sigma: 3, D: 2 }, (sums, counts) => {
      const all = sums.reduce((a, b) => a + b, 0)
      return -all / (0.5 * Math.max(...counts) + 1.5 * Math.sqrt(total(counts, counts.length)))
    })
  })

  it('mirror descent is gradient descent with the counted schedule', () => {
    assertFollows({ name: 'mirror-descent', L: 0.5, sigma: 3, D: 2 }, (sums, counts) =>
      sums.reduce((w, sum, j) => {
        const largest = Math.max(...counts.slice(0, j + 1))
        return w - sum / (0.5 * largest + 1.5 * Math.sqrt(total(counts, j + 1)))
      }, 0)
    )
  })

  it("is the paper's schedule L + (σ/D)√(j/b) when every batch has b gradients", () => {
    const run = batches(20).map(({ sum }) => ({ sum, count: 8 }))
    const [L, sigma, D] = [2, 3, 4]
    const averaged = replay(createRule({ name: 'dual-averaging', L, sigma, D }), run).parameters[0][0]
    const mean = run.reduce((z, { sum }) => z + sum[0][0] / 8, 0)
    assert.ok(Math.abs(averaged + mean / (L + (sigma / D) * Math.sqrt(20 / 8))) < 1e-6)
    const descended = replay(createRule({ name: 'mirror-descent', L, sigma, D }), run).parameters[0][0]
    const expected = run.reduce((w, { sum }, j) => w - sum[0][0] / 8 / (L + (sigma / D) * Math.sqrt((j + 1) / 8)), 0)
    assert.ok(Math.abs(descended - expected) < 1e-5)
  })

  it('counts gradients exactly beyond the precision of float32', () => {
    const rule = createRule({ name: 'mirror-descent' })
    let now: RuleState = { parameters: zeros(layout), state: [Float32Array.of(2 ** 10, 2 ** 20 - 1, 1)] }
    for (let j = 0; j < 3; j++) now = rule.step(now, zeros(layout), 1, j)
    assert.deepEqual([...now.state[0]], [2 ** 10 + 1, 2, 1])
  })

  it('entropic descent stays on the simplex and follows exponentiated gradients', () => {
    const rule = createRule({ name: 'mirror-descent', geometry: 'entropic', L: 1, sigma: 0 })
    const run = batches(50)
    const { parameters } = replay(rule, run)
    const flat = parameters.flatMap(block => [...block])
    assert.ok(flat.every(w => w > 0))
    assert.ok(Math.abs(flat.reduce((a, b) => a + b) - 1) < 1e-6)
    const one = replay(rule, run.slice(0, 1)).parameters.flatMap(block => [...block])
    const raw = run[0].sum.flatMap(block => [...block]).map(g => Math.exp(-g / run[0].count))
    const norm = raw.reduce((a, b) => a + b)
    one.forEach((w, i) => {
      assert.ok(Math.abs(w - raw[i] / norm) < 1e-6)
    })
  })

  it('entropic descent is stable for gradients of any size, and weights can grow again', () => {
    const rule = createRule({ name: 'mirror-descent', geometry: 'entropic', L: 1, sigma: 0 })
    const push = [Float32Array.of(-1e20, 1e20, 0), Float32Array.of(0, 0)]
    const gone = rule.step({ parameters: zeros(layout), state: zeros(rule.stateLayout(layout)) }, push, 1, 0)
    assert.equal(gone.parameters[0][0], 1)
    const back = rule.step(
      gone,
      push.map(block => block.map(g => -g / 1e18)),
      1,
      1
    )
    assert.ok(back.parameters[0][1] > 0.99)
  })

  it('momentum follows its recurrence', () => {
    assertFollows({ name: 'momentum', step: 0.1, momentum: 0.5 }, (sums, counts) => {
      let [w, v] = [0, 0]
      sums.forEach((sum, j) => {
        v = 0.5 * v + sum / counts[j]
        w -= 0.1 * v
      })
      return w
    })
  })

  it('Adam follows algorithm 1', () => {
    assertFollows({ name: 'adam', step: 0.1, beta1: 0.8, beta2: 0.9, epsilon: 1e-3 }, (sums, counts) => {
      let [w, m, v] = [0, 0, 0]
      sums.forEach((sum, j) => {
        const g = sum / counts[j]
        m = 0.8 * m + 0.2 * g
        v = 0.9 * v + 0.1 * g * g
        w -= (0.1 * (m / (1 - 0.8 ** (j + 1)))) / (Math.sqrt(v / (1 - 0.9 ** (j + 1))) + 1e-3)
      })
      return w
    })
  })

  for (const name of ruleNames.filter(name => 'radius' in rules[name].options)) {
    it(`${name} projects onto the ball, and only from outside`, () => {
      const run = batches(20)
      const free = replay(createRule({ name }), run).parameters
      const norm = Math.hypot(...free.flatMap(block => [...block]))
      assert.ok(norm > 0.01)
      const radius = 0.005
      const held = replay(createRule({ name, radius }), run).parameters.flatMap(block => [...block])
      assert.ok(Math.abs(Math.hypot(...held) - radius) < 1e-6 || Math.hypot(...held) < radius)
      assert.deepEqual(replay(createRule({ name, radius: 1e6 }), run).parameters, free)
      const first = replay(createRule({ name }), run.slice(0, 1)).parameters.flatMap(block => [...block])
      const length = Math.hypot(...first)
      const inside = replay(createRule({ name, radius: length / 2 }), run.slice(0, 1)).parameters
      inside
        .flatMap(block => [...block])
        .forEach((w, i) => {
          assert.ok(Math.abs(w - first[i] / 2) <= 1e-6 * length)
        })
    })
  }

  it('has a canonical description, which differs between options', () => {
    assert.equal(createRule({ growth: 0.5, name: 'adagrad' }).description, 'adagrad(step=0.2,initial=0.01,growth=0.5)')
    assert.equal(createRule().description, createRule({ name: 'adagrad', step: 0.2 }).description)
    assert.equal(new Set(specs.map(spec => createRule(spec).description)).size, specs.length)
  })

  it('rejects unknown names, unknown options and values out of range', () => {
    const bad: [object, RegExp][] = [
      [{ name: 'sgd' }, /unknown rule 'sgd'; expected one of adagrad/],
      [{ name: 'adagrad', stepp: 1 }, /unknown option stepp; expected one of step, initial/],
      [{ name: 'adagrad', step: 0 }, /step must be a number above 0, not 0/],
      [{ name: 'adam', beta1: 1 }, /beta1 must be a number at least 0 and below 1/],
      [{ name: 'momentum', step: Number.NaN }, /step/],
      [{ name: 'mirror-descent', geometry: 'round' }, /euclidean or entropic, not round/],
      [{ name: 'mirror-descent', geometry: 'entropic', radius: 1 }, /remove radius/]
    ]
    for (const [spec, message] of bad) {
      const throws = () => createRule(spec as RuleSpec)
      assert.throws(throws, OptionError)
      assert.throws(throws, message)
    }
  })
})
