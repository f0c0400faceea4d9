/**
 * One run: a scenario, an algorithm, virtual time. Inputs arrive, messages travel, nodes crash and come back; every input
 * is scored with what serves predictions at its node, and with the best predictor in hindsight.
 */
import { type Predictor, type Recipe, startingPredictor } from '../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../src/learner/index.js'
import { algorithms } from './algorithms/index.js'
import { admbBound, type BoundTerms, dmbBound, isolatedBound, serialBound } from './bounds.js'
import { type Event, EventQueue } from './engine/queue.js'
import { Random } from './engine/random.js'
import { Trace } from './engine/trace.js'
import { drawFaults } from './faults/schedule.js'
import { createInputs, type Inputs } from './inputs.js'
import { Links } from './links.js'
import type { Scenario } from './scenario.js'
import { createTopology, type Topology } from './topology.js'
import type { Algorithm, World } from './world.js'

export interface CurvePoint {
  readonly inputs: number
  readonly regret: number
  readonly averageLoss: number
}

/** What a run came to. Losses in nats or squared-error units; see the scenario for the rest of its keys. */
export interface RunResult {
  readonly algorithm: string
  readonly nodes: number
  readonly inputs: number
  readonly batch: number
  readonly seed: number
  readonly regret: number
  readonly averageLoss: number
  readonly comparatorLoss: number
  /** The theorem's bound on the expected regret, where there is one for the algorithm and nothing fails. */
  readonly bound?: number
  readonly updates: number
  readonly adoptions: number
  readonly discarded: number
  readonly messages: number
  readonly bytes: number
  readonly violations: readonly string[]
  readonly events: number
  readonly traceHash: string
  readonly virtualMs: number
  readonly seconds: number
  /** Regret and average loss at growing numbers of inputs. */
  readonly curve: readonly CurvePoint[]
}

const Kind = { Input: 0, Deliver: 1, Tick: 2, Timer: 3, Fault: 4 } as const

/** A node hears all that arrives at an instant before it speaks at that instant. */
const LAST = 1

interface Message {
  readonly to: number
  readonly from: number
  readonly content: unknown
  /** Life of the receiver for which it was sent: a restarted node does not get what was on its way to the old one. */
  readonly life: number
}

/** What takes the place of a scenario's stream and rule: a fuzzer's exact learner, or a researcher's own. */
export interface Parts {
  readonly inputs: Inputs
  readonly recipe: Recipe
}

/** Runs a scenario: same scenario, same result, on any machine (`seconds` apart). */
export function simulate(scenario: Scenario, parts?: Parts): RunResult {
  return new Simulation(scenario, parts).run()
}

class Simulation implements World {
  readonly topology: Topology
  readonly learner
  readonly recipe: Recipe
  readonly start: Predictor
  readonly isExact: boolean
  readonly batch: number
  readonly period: number
  readonly latency: number
  readonly carry: number
  readonly labels: readonly string[]
  now = 0
  readonly #scenario: Scenario
  readonly #queue = new EventQueue()
  readonly #trace = new Trace()
  readonly #inputs: Inputs
  readonly #links: Links
  readonly #faults
  readonly #lives: Int32Array
  readonly #up: Uint8Array
  readonly #messages: (Message | undefined)[] = []
  readonly #freeMessages: number[] = []
  readonly #timers: { readonly node: number; readonly tag: number; readonly life: number }[] = []
  readonly #algorithm: Algorithm
  #sent = 0
  #bytes = 0

  constructor(scenario: Scenario, parts: Parts | undefined) {
    this.#scenario = scenario
    const { nodes, batch, period, latency, carry, rule, average, stream, seed } = scenario
    const random = new Random(seed)
    this.isExact = parts?.recipe.rule.name === 'counting'
    this.batch = batch
    this.period = period
    this.latency = latency
    this.carry = carry
    this.topology = createTopology(scenario.topology, nodes, scenario.degree, random.fork('topology'))
    this.labels = labelsOf(scenario, random.fork('labels'))
    this.#inputs = parts?.inputs ?? createInputs(stream, scenario, random.fork('stream'))
    this.learner = createLearner({ model: this.#inputs.model, dimension: this.#inputs.dimension })
    this.recipe = parts?.recipe ?? {
      rule: createRule({ name: rule }),
      averaging: createAveraging({ name: average }),
      digest
    }
    this.start = startingPredictor(this.learner.initial(), this.recipe)
    this.#links = new Links(scenario, random.fork('links'))
    const duration = (scenario.inputs / nodes) * scenario.interval
    this.#faults = drawFaults(scenario, duration, random.fork('faults'))
    this.#lives = new Int32Array(nodes)
    this.#up = new Uint8Array(nodes).fill(1)
    this.#algorithm = algorithms[scenario.algorithm](this)
  }

  isUp(node: number): boolean {
    return node < 0 || this.#up[node] === 1
  }

  send(from: number, to: number, content: unknown, bytes: number): void {
    this.#sent++
    this.#bytes += bytes
    const copies = this.#links.copies(from, to)
    for (let copy = 0; copy < copies; copy++) {
      const slot = this.#freeMessages.pop() ?? this.#messages.length
      this.#messages[slot] = { to, from, content, life: to < 0 ? 0 : this.#lives[to] }
      this.#queue.push(this.now + this.#links.delay(), Kind.Deliver, slot, 0)
    }
  }

  after(delay: number, node: number, tag: number): void {
    const life = node < 0 ? 0 : this.#lives[node]
    this.#queue.push(this.now + delay, Kind.Timer, this.#timers.push({ node, tag, life }) - 1, 0)
  }

  run(): RunResult {
    const began = performance.now()
    const { inputs, nodes, interval, period } = this.#scenario
    for (let node = 0; node < nodes; node++) this.#queue.push(interval, Kind.Input, node, 0)
    for (let node = 0; node < nodes; node++) this.#queue.push(period, Kind.Tick, node, 0, LAST)
    for (const [index, { time }] of this.#faults.entries()) this.#queue.push(time, Kind.Fault, index, 0)
    const served = { loss: 0, hits: 0 }
    const best = { loss: 0, hits: 0 }
    const moments = new Moments()
    const curve: CurvePoint[] = []
    const event: Event = { time: 0, kind: 0, a: 0, b: 0 }
    let events = 0
    let count = 0
    let nextPoint = 16
    while (count < inputs && this.#queue.pop(event)) {
      events++
      this.now = event.time
      this.#trace.add(event.time, event.kind, event.a)
      switch (event.kind) {
        case Kind.Input: {
          const node = event.a
          this.#queue.push(this.now + interval, Kind.Input, node, 0)
          if (!this.#up[node]) break
          const examples = this.#inputs.next()
          this.learner.score(this.#algorithm.serving(node), examples, 0, 1, served)
          this.learner.score(this.#inputs.optimum, examples, 0, 1, best)
          moments.see(examples.values, examples.offsets[1])
          this.#algorithm.input(node, examples)
          if (++count < nextPoint && count < inputs) break
          nextPoint = Math.ceil(nextPoint * Math.SQRT2)
          curve.push({ inputs: count, regret: served.loss - best.loss, averageLoss: served.loss / count })
          break
        }
        case Kind.Deliver:
          this.#deliver(event.a)
          break
        case Kind.Tick:
          this.#queue.push(this.now + period, Kind.Tick, event.a, 0, LAST)
          if (this.#up[event.a]) this.#algorithm.tick(event.a)
          break
        case Kind.Timer: {
          const { node, tag, life } = this.#timers[event.a]
          if (node < 0 || (this.#up[node] && this.#lives[node] === life)) this.#algorithm.timer(node, tag)
          break
        }
        case Kind.Fault:
          this.#fault(event.a)
          break
        default:
          throw new RangeError(`no event of kind ${event.kind}`)
      }
    }
    const tally = this.#algorithm.tally()
    this.#trace.add(served.loss, tally.updates, tally.adoptions)
    const { algorithm, batch, seed } = this.#scenario
    return {
      algorithm,
      nodes,
      inputs: count,
      batch,
      seed,
      regret: served.loss - best.loss,
      averageLoss: served.loss / count,
      comparatorLoss: best.loss / count,
      bound: this.#bound(moments, count),
      updates: tally.updates,
      adoptions: tally.adoptions,
      discarded: tally.discarded,
      messages: this.#sent,
      bytes: this.#bytes,
      violations: tally.violations ?? [],
      events,
      traceHash: this.#trace.hash,
      virtualMs: this.now,
      seconds: (performance.now() - began) / 1000,
      curve
    }
  }

  #deliver(slot: number): void {
    const message = this.#messages[slot] as Message
    this.#messages[slot] = undefined
    this.#freeMessages.push(slot)
    const { to, from, content, life } = message
    if (to >= 0 && (!this.#up[to] || this.#lives[to] !== life)) return
    if (this.#links.isCut(from, to)) return
    this.#algorithm.receive(to, from, content)
  }

  #fault(index: number): void {
    const fault = this.#faults[index]
    switch (fault.kind) {
      case 'crash':
        this.#up[fault.node] = 0
        this.#algorithm.crash(fault.node)
        break
      case 'restart':
        this.#up[fault.node] = 1
        this.#lives[fault.node]++
        this.#algorithm.restart(fault.node)
        break
      case 'partition':
        this.#links.partition(fault.sides)
        break
      case 'heal':
        this.#links.heal()
        break
      default:
        fault satisfies never
    }
  }

  #bound(moments: Moments, inputs: number): number | undefined {
    const { algorithm, batch, nodes, period, latency, interval, faults, loss } = this.#scenario
    if (faults.crashShare > 0 || faults.partitionShare > 0 || loss > 0 || this.#inputs.model !== 'logistic')
      return undefined
    const terms = moments.terms(this.#inputs.optimum[0])
    const { diameter } = this.topology
    switch (algorithm) {
      case 'serial':
        return serialBound(terms, batch, inputs)
      case 'isolated':
        return isolatedBound(terms, batch, inputs, nodes)
      case 'dmb':
        return dmbBound(terms, batch, inputs, (2 * diameter * latency * nodes) / interval)
      case 'admb':
        return admbBound(terms, {
          batch,
          inputs,
          diameter,
          periodAndDelays: period + 2 * latency,
          perUnit: nodes / interval
        })
      default:
        return undefined
    }
  }
}

/** What the bounds need to know of the inputs: for the logistic loss ‖∇f‖ ≤ ‖x‖ and the smoothness is at most ‖x‖²/4. */
class Moments {
  #count = 0
  #sum = 0
  #most = 0

  see(values: ArrayLike<number>, length: number): void {
    let square = 0
    for (let i = 0; i < length; i++) square += values[i] * values[i]
    this.#count++
    this.#sum += square
    if (square > this.#most) this.#most = square
  }

  terms(optimum: Float32Array): BoundTerms {
    const square = optimum.reduce((sum, weight) => sum + weight * weight, 0)
    return { radius: Math.sqrt(square / 2), smoothness: this.#most / 4, deviation: Math.sqrt(this.#sum / this.#count) }
  }
}

/** Indices as text of equal length, so that their order as text is their order as numbers. */
function labelsOf({ nodes, labels }: Scenario, random: Random): string[] {
  const numbers = Array.from({ length: nodes }, (_, i) => i + 1)
  if (labels === 'random') random.shuffle(numbers)
  if (labels === 'hub-highest') numbers[0] = nodes + 1
  const width = String(nodes + 1).length
  return numbers.map(number => String(number).padStart(width, '0'))
}
