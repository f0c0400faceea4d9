/**
 * One run: a scenario, an algorithm, virtual time. Inputs arrive, messages travel, nodes crash and come back; every input
 * is scored with what serves predictions at its node, and with the best predictor in hindsight.
 */
import {
  AdmbNode,
  type AdmbOptions,
  type Predictor,
  type PredictorName,
  type Recipe,
  startingPredictor
} from '../src/admb/index.js'
import { createAveraging, createLearner, createRule, digest } from '../src/learner/index.js'
import { algorithms } from './algorithms/index.js'
import { type Invariants, invariants, Violation } from './checkers/index.js'
import { Watch } from './checkers/watch.js'
import { type Event, EventQueue } from './engine/queue.js'
import { Random } from './engine/random.js'
import { Trace } from './engine/trace.js'
import { drawFaults, type Fault } from './faults/schedule.js'
import { createInputs, type Inputs } from './inputs.js'
import type { LearningNode, NodeFactory } from './learning-node.js'
import { Links } from './links.js'
import type { Observer } from './observer.js'
import { Begun } from './regret/begun.js'
import { areLinked, GoodPeriods } from './regret/good-periods.js'
import { RegretMeter } from './regret/meter.js'
import type { RunResult } from './result.js'
import type { Scenario } from './scenario.js'
import type { RecordedStream } from './streams/replay.js'
import { createTopology, type Topology } from './topology.js'
import type { Algorithm, World } from './world.js'

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

/** What takes the place of what a scenario says. */
export interface SimulateOptions {
  /** Default: the scenario's stream. */
  readonly inputs?: Inputs
  /** What the stream `file` consists of. */
  readonly data?: RecordedStream
  /** Default: the scenario's rule and average. */
  readonly recipe?: Recipe
  /** Default: drawn as the scenario says. */
  readonly faults?: readonly Fault[]
  readonly observer?: Observer
  /** Properties to watch. Default: all where the scenario's `checks` says so, else none. */
  readonly invariants?: Invariants
  /** What learns at each node with the algorithm `admb`. Default: AdmbNode. */
  readonly node?: NodeFactory
  /**
   * Whether to go on after the last input, without faults, until everything has settled: a violation if it does not.
   * Default: false.
   */
  readonly settle?: boolean
}

/** Waits within which everything settles: for the longest backoff at each hop in turn, and for what was on its way. */
const SETTLING = 100

/** Runs a scenario: same scenario, same result, on any machine (`seconds` apart). */
export function simulate(scenario: Scenario, options: SimulateOptions = {}): RunResult {
  return new Simulation(scenario, options).run()
}

class Simulation implements World {
  readonly topology: Topology
  readonly learner
  readonly recipe: Recipe
  readonly start: Predictor
  readonly batch: number
  readonly period: number
  readonly latency: number
  readonly carry: number
  readonly labels: readonly string[]
  readonly #observer: Observer
  readonly #begun: Begun
  now = 0
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
  readonly #queue = new EventQueue()
  readonly #trace = new Trace()
  readonly #inputs: Inputs
  readonly #links: Links
  readonly #meter: RegretMeter
  readonly #periods: GoodPeriods
  readonly #lives: Int32Array
  readonly #up: Uint8Array
  readonly #messages: (Message | undefined)[] = []
  readonly #freeMessages: number[] = []
  readonly #timers: { readonly node: number; readonly tag: number; readonly life: number }[] = []
  readonly #algorithm: Algorithm
  readonly #node: NodeFactory
  readonly #watch: Watch | undefined
  readonly #settles: boolean
  readonly #event: Event = { time: 0, kind: 0, a: 0, b: 0 }
  #events = 0
  #violation: Violation | undefined
  /** Faults are over for good. */
  #calm = false
  #sent = 0
  #bytes = 0

  constructor(scenario: Scenario, options: SimulateOptions) {
    this.scenario = scenario
    const { nodes, batch, period, latency, carry, rule, average, seed } = scenario
    const random = new Random(seed)
    this.batch = batch
    this.period = period
    this.latency = latency
    this.carry = carry
    this.topology = createTopology(scenario.topology, nodes, scenario.degree, random.fork('topology'))
    this.labels = labelsOf(scenario, random.fork('labels'))
    this.#inputs = options.inputs ?? createInputs(scenario, random.fork('stream'), options.data)
    const { model, dimension, classes } = this.#inputs
    this.learner = createLearner({ model, dimension, classes })
    this.recipe = options.recipe ?? {
      rule: createRule({ name: rule }),
      averaging: createAveraging({ name: average }),
      digest
    }
    this.start = startingPredictor(this.learner.initial(), this.recipe)
    this.#links = new Links(scenario, random.fork('links'))
    const duration = (scenario.inputs / nodes) * scenario.interval
    this.faults = options.faults ?? drawFaults(scenario, duration, random.fork('faults'))
    this.#observer = options.observer ?? {}
    this.#begun = new Begun(nodes, scenario.starts === 'distinct' ? 1 : 0)
    const isUp = (node: number) => this.isUp(node)
    const isCut = (from: number, to: number) => this.#links.isCut(from, to)
    this.#periods = new GoodPeriods(this.topology.diameter * (period + 2 * latency), () =>
      areLinked(this.topology, isUp, isCut)
    )
    this.#meter = new RegretMeter(this.learner, this.#inputs, this.#periods, scenario)
    this.#lives = new Int32Array(nodes)
    this.#up = new Uint8Array(nodes).fill(1)
    this.#node = options.node ?? (settings => new AdmbNode(settings))
    this.#settles = options.settle ?? false
    const watched = options.invariants ?? (scenario.checks ? invariants : undefined)
    this.#watch = watched && new Watch(watched(this))
    this.#algorithm = algorithms[scenario.algorithm](this)
  }

  isUp(node: number): boolean {
    return node < 0 || this.#up[node] === 1
  }

  holds(node: number, name: PredictorName, how: 'updated' | 'adopted' | 'restarted'): void {
    this.#begun.holds(node, name.updates, this.#meter.count)
    this.#observer.holds?.(this.now, node, name, how)
  }

  createNode(index: number, options: AdmbOptions): LearningNode {
    return this.#watch?.create(index, options, this.#node) ?? this.#node(options)
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
    const { inputs, nodes, interval, period } = this.scenario
    for (let node = 0; node < nodes; node++) this.#queue.push(interval, Kind.Input, node, 0)
    for (let node = 0; node < nodes; node++) this.#queue.push(period, Kind.Tick, node, 0, LAST)
    for (const [index, { time }] of this.faults.entries()) this.#queue.push(time, Kind.Fault, index, 0)
    try {
      while (this.#meter.count < inputs && this.#step());
      if (this.#settles) this.#settle()
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.#violation = error
    }
    const meter = this.#meter
    const tally = this.#algorithm.tally()
    this.#trace.add(meter.loss, tally.updates, tally.adoptions)
    const { algorithm, batch, seed } = this.scenario
    return {
      algorithm,
      nodes,
      inputs: meter.count,
      batch,
      seed,
      startInputs: this.#begun.inputs,
      updates: tally.updates,
      adoptions: tally.adoptions,
      discarded: tally.discarded,
      messages: this.#sent,
      bytes: this.#bytes,
      violations: this.#violation ? [`${this.#violation.message} (at ${this.now.toFixed(3)} ms)`] : [],
      events: this.#events,
      traceHash: this.#trace.hash,
      virtualMs: this.now,
      seconds: (performance.now() - began) / 1000,
      ...meter.close(this.scenario, this.topology.diameter, this.faults.length > 0)
    }
  }

  /** Carries out the next event. False if there is none. */
  #step(): boolean {
    const event = this.#event
    if (!this.#queue.pop(event)) return false
    this.#events++
    this.now = event.time
    this.#trace.add(event.time, event.kind, event.a)
    switch (event.kind) {
      case Kind.Input:
        this.#input(event.a)
        break
      case Kind.Deliver:
        this.#deliver(event.a)
        break
      case Kind.Tick:
        this.#queue.push(this.now + this.period, Kind.Tick, event.a, 0, LAST)
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
    return true
  }

  #input(node: number): void {
    const { inputs, interval } = this.scenario
    const meter = this.#meter
    if (meter.count >= inputs) return
    this.#queue.push(this.now + interval, Kind.Input, node, 0)
    if (!this.#up[node]) return
    const examples = this.#inputs.next()
    meter.served(this.now, node, this.#algorithm.serving(node), examples)
    this.#algorithm.input(node, examples)
    if (meter.isPointDue || meter.count === inputs) meter.point(this.#algorithm.tally().updates, this.#bytes)
  }

  /** Ends all faults, and runs on until everything has settled. */
  #settle(): void {
    this.#links.calm()
    this.#up.forEach((up, node) => {
      if (!up) this.#restart(node)
    })
    this.#calm = true
    const { diameter } = this.topology
    const round = this.period + 2 * this.latency
    let violation: Violation | undefined
    for (let wait = 0; wait < SETTLING; wait++) {
      const until = this.now + (diameter + 1) * round
      while (this.#queue.nextTime <= until && this.#step());
      this.now = until
      violation = this.#watch?.unsettled(node => this.isUp(node))
      if (violation === undefined) return
    }
    if (violation) throw violation
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
    if (this.#calm) return
    const fault = this.faults[index]
    switch (fault.kind) {
      case 'crash':
        if (!this.#up[fault.node]) break
        this.#up[fault.node] = 0
        this.#algorithm.crash(fault.node)
        break
      case 'restart':
        if (!this.#up[fault.node]) this.#restart(fault.node)
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
    this.#periods.changed(this.now)
  }

  #restart(node: number): void {
    this.#up[node] = 1
    this.#lives[node]++
    this.#algorithm.restart(node)
  }
}

/** Indices as text of equal length, so that their order as text is their order as numbers. */
function labelsOf({ nodes, labels, topology }: Scenario, random: Random): string[] {
  const numbers = Array.from({ length: nodes }, (_, i) => i + 1)
  if (labels === 'random') random.shuffle(numbers)
  if (labels === 'hub-highest') numbers[topology === 'path' ? nodes >> 1 : 0] = nodes + 1
  const width = String(nodes + 1).length
  return numbers.map(number => String(number).padStart(width, '0'))
}
