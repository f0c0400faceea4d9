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
import { drawFaults } from './faults/draw.js'
import { type NodeFault, Population } from './faults/population.js'
import type { Fault } from './faults/schedule.js'
import { createInputs, type Inputs } from './inputs.js'
import type { LearningNode, NodeFactory } from './learning-node.js'
import { Links, linkKey } from './network/links.js'
import { Mail, type Message } from './network/mail.js'
import type { Observer } from './observer.js'
import { Begun } from './regret/begun.js'
import { RegretMeter } from './regret/meter.js'
import type { RunResult } from './result.js'
import type { Scenario } from './scenario.js'
import { createTopology, type Topology } from './topology.js'
import type { Algorithm, World } from './world.js'

const Kind = { Input: 0, Deliver: 1, Tick: 2, Timer: 3, Fault: 4 } as const

/** A node hears all that arrives at an instant before it speaks at that instant. */
const LAST = 1

/** What takes the place of what a scenario says. */
export interface SimulateOptions {
  /** Default: the scenario's stream. */
  readonly inputs?: Inputs
  /** Default: the scenario's rule and average. */
  readonly recipe?: Recipe
  /** Default: drawn as the scenario says. */
  readonly faults?: readonly Fault[]
  readonly observer?: Observer
  /** Properties to watch. Default: those that hold always if the scenario's `checks` is on, else none. */
  readonly invariants?: Invariants
  /** What learns at each node with the algorithm `admb`. Default: AdmbNode. */
  readonly node?: NodeFactory
  /**
   * Whether to go on after the last input, without faults, until everything has settled; a violation if it does not.
   * Default: false.
   */
  readonly settle?: boolean
}

/** Crossings of the network within which everything settles: at each hop the longest backoff may have to pass. */
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
  readonly labels: string[]
  readonly #observer: Observer
  readonly #begun: Begun
  now = 0
  readonly scenario: Scenario
  readonly faults: readonly Fault[]
  readonly sharesPredictors: boolean
  readonly #queue = new EventQueue()
  readonly #trace = new Trace()
  readonly #inputs: Inputs
  readonly #links: Links
  readonly #meter: RegretMeter
  readonly #population: Population
  readonly #mail = new Mail()
  readonly #timers: { readonly node: number; readonly tag: number; readonly life: number }[] = []
  /** Timers of paused nodes that have run out, by their places in #timers. */
  #waitingTimers: number[] = []
  readonly #algorithm: Algorithm
  /** Labels as they were at the start. */
  readonly #identities: readonly string[]
  readonly #node: NodeFactory
  readonly #watch: Watch | undefined
  readonly #settles: boolean
  readonly #event: Event = { time: 0, kind: 0, a: 0, b: 0 }
  #events = 0
  /** Whether faults are over for good. */
  #calm = false
  #violation: string | undefined
  #sent = 0
  #bytes = 0

  constructor(scenario: Scenario, options: SimulateOptions) {
    this.scenario = scenario
    const { nodes, batch, period, latency, carry, rule, average, stream, seed } = scenario
    const random = new Random(seed)
    this.batch = batch
    this.period = period
    this.latency = latency
    this.carry = carry
    this.topology = createTopology(scenario.topology, nodes, scenario.degree, random.fork('topology'))
    this.labels = labelsOf(scenario, random.fork('labels'))
    this.#inputs = options.inputs ?? createInputs(stream, scenario, random.fork('stream'))
    this.learner = createLearner({ model: this.#inputs.model, dimension: this.#inputs.dimension })
    this.recipe = options.recipe ?? {
      rule: createRule({ name: rule }),
      averaging: createAveraging({ name: average }),
      digest
    }
    this.start = startingPredictor(this.learner.initial(), this.recipe)
    this.#links = new Links(scenario, random.fork('links'))
    const duration = (scenario.inputs / nodes) * scenario.interval
    const faults = options.faults ?? drawFaults(scenario, duration, random.fork('faults'))
    this.faults = [...faults].sort((a, b) => a.time - b.time)
    this.#population = new Population(nodes, this.faults)
    this.#identities = [...this.labels]
    this.#observer = options.observer ?? {}
    this.#begun = new Begun(nodes, scenario.starts === 'distinct' ? 1 : 0)
    this.#meter = new RegretMeter(this.learner, this.#inputs)
    this.#node = options.node ?? (settings => new AdmbNode(settings))
    this.#settles = options.settle ?? false
    const watched = options.invariants ?? (scenario.checks ? invariants : undefined)
    this.#watch = watched && new Watch(watched(this))
    // Where everything is checked, every node makes every predictor itself.
    this.sharesPredictors = watched === undefined && options.node === undefined
    this.#algorithm = algorithms[scenario.algorithm](this)
  }

  isUp(node: number): boolean {
    return node < 0 || this.#population.isUp(node)
  }

  isAlive(node: number): boolean {
    return node < 0 || this.#population.isAlive(node)
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
      const slot = this.#mail.put({ to, from, content, life: this.#life(to) })
      this.#queue.push(this.now + this.#links.delay(), Kind.Deliver, slot, 0)
    }
  }

  after(delay: number, node: number, tag: number): void {
    this.#queue.push(this.now + delay, Kind.Timer, this.#timers.push({ node, tag, life: this.#life(node) }) - 1, 0)
  }

  run(): RunResult {
    const began = performance.now()
    const { inputs, nodes, interval, period } = this.scenario
    for (let node = 0; node < nodes; node++) this.#queue.push(interval, Kind.Input, node, 0)
    for (let node = 0; node < nodes; node++) this.#queue.push(period, Kind.Tick, node, 0, LAST)
    for (const [index, { time }] of this.faults.entries()) this.#queue.push(time, Kind.Fault, index, 0)
    const meter = this.#meter
    try {
      while (meter.count < inputs && this.#step());
      if (this.#settles) this.#settle()
    } catch (error) {
      if (!(error instanceof Violation)) throw error
      this.#violation = `${error.message} (at ${this.now.toFixed(2)} ms)`
    }
    const tally = this.#algorithm.tally()
    this.#trace.add(meter.loss, tally.updates, tally.adoptions)
    const { algorithm, batch, seed } = this.scenario
    return {
      algorithm,
      nodes,
      inputs: meter.count,
      batch,
      seed,
      regret: meter.regret,
      averageLoss: meter.averageLoss,
      comparatorLoss: meter.comparatorLoss,
      bound: meter.bound(this.scenario, this.topology.diameter),
      startInputs: this.#begun.inputs,
      updates: tally.updates,
      adoptions: tally.adoptions,
      discarded: tally.discarded,
      messages: this.#sent,
      bytes: this.#bytes,
      violations: this.#violation === undefined ? [] : [this.#violation],
      events: this.#events,
      traceHash: this.#trace.hash,
      virtualMs: this.now,
      seconds: (performance.now() - began) / 1000,
      curve: meter.curve
    }
  }

  /** Carries out the next event. False if there is none. */
  #step(): boolean {
    const event = this.#event
    if (!this.#queue.pop(event)) return false
    const observer = this.#observer
    this.#events++
    this.now = event.time
    this.#trace.add(event.time, event.kind, event.a)
    observer.event?.(event.time, () => this.#describe(event))
    switch (event.kind) {
      case Kind.Input:
        this.#input(event.a)
        break
      case Kind.Deliver:
        this.#arrive(this.#mail.take(event.a))
        break
      case Kind.Tick:
        this.#queue.push(this.now + this.period, Kind.Tick, event.a, 0, LAST)
        if (this.isUp(event.a)) this.#algorithm.tick(event.a)
        break
      case Kind.Timer:
        this.#timer(event.a)
        break
      case Kind.Fault:
        if (!this.#calm) this.#fault(this.faults[event.a])
        break
      default:
        throw new RangeError(`no event of kind ${event.kind}`)
    }
    observer.after?.(event.time)
    return true
  }

  #input(node: number): void {
    const { inputs, interval } = this.scenario
    const meter = this.#meter
    if (meter.count >= inputs) return
    this.#queue.push(this.now + interval, Kind.Input, node, 0)
    if (!this.isUp(node)) return
    const examples = this.#inputs.next()
    meter.served(node, this.#algorithm.serving(node), examples)
    this.#algorithm.input(node, examples)
    this.#observer.served?.(meter.count)
    if (meter.isPointDue || meter.count === inputs) meter.point(this.#algorithm.tally().updates, this.#bytes)
  }

  /** Ends all faults and goes on until everything has settled. */
  #settle(): void {
    this.#calm = true
    this.#links.calm()
    const { now: time } = this
    this.#fault({ time, kind: 'heal' })
    for (const fault of this.faults) if (fault.kind === 'clog') this.#fault({ ...fault, kind: 'unclog' })
    for (let node = 0; node < this.topology.nodes; node++) {
      this.#fault({ time, kind: 'resume', node })
      this.#fault({ time, kind: 'restart', node, disk: 'kept' })
    }
    const crossing = (this.topology.diameter + 1) * (this.period + 2 * this.latency)
    let violation: Violation | undefined
    for (let crossings = 1; crossings <= SETTLING; crossings++) {
      while (this.#queue.nextTime <= time + crossings * crossing && this.#step());
      violation = this.#watch?.unsettled(node => this.isUp(node))
      if (violation === undefined) return
    }
    if (violation) throw violation
  }

  #describe({ kind, a }: Event): string {
    switch (kind) {
      case Kind.Input:
        return this.isUp(a) ? `an input at node ${a}` : `no input at node ${a}, which is not running`
      case Kind.Deliver: {
        const { from, to } = this.#mail.at(a)
        return `a message from node ${from} reaches node ${to}`
      }
      case Kind.Tick:
        return `a period ends at node ${a}`
      case Kind.Timer:
        return `a timer of node ${this.#timers[a].node} runs out`
      default: {
        const { time: _time, ...fault } = this.faults[a]
        return `fault ${JSON.stringify(fault)}`
      }
    }
  }

  #life(node: number): number {
    return node < 0 ? 0 : this.#population.life(node)
  }

  /** A message has come to the end of its way. */
  #arrive(message: Message): void {
    const { to, from } = message
    if (this.#links.isCut(from, to)) return
    if (this.#links.isClogged(from, to)) this.#mail.hold(linkKey(from, to), message)
    else if (to >= 0 && this.#population.isPaused(to)) this.#mail.hold(inbox(to), message)
    else this.#hand(message)
  }

  #hand({ to, from, content, life }: Message): void {
    if (this.isUp(to) && this.#life(to) === life) this.#algorithm.receive(to, from, content)
  }

  #timer(index: number): void {
    const { node, tag, life } = this.#timers[index]
    if (this.#life(node) !== life) return
    if (this.isUp(node)) this.#algorithm.timer(node, tag)
    else if (this.#population.isPaused(node)) this.#waitingTimers.push(index)
  }

  #fault(fault: Fault): void {
    this.#observer.fault?.(this.now, fault)
    switch (fault.kind) {
      case 'partition':
        this.#links.partition(fault)
        break
      case 'heal':
        this.#links.heal()
        break
      case 'clog':
        this.#links.clog(fault.from, fault.to)
        break
      case 'unclog':
        this.#links.unclog(fault.from, fault.to)
        for (const message of this.#mail.release(linkKey(fault.from, fault.to))) this.#arrive(message)
        break
      default:
        if (this.#population.apply(fault)) this.#nodeFault(fault)
    }
  }

  #nodeFault(fault: NodeFault): void {
    const { node } = fault
    switch (fault.kind) {
      case 'crash':
      case 'leave':
        this.#mail.release(inbox(node))
        this.#algorithm.crash(node)
        break
      case 'restart':
        if (fault.disk === 'lost') this.#renew(node)
        this.#algorithm.restart(node, fault.disk)
        break
      case 'join':
        if (this.#population.life(node) > 0) this.#renew(node)
        this.#algorithm.restart(node, 'lost')
        break
      case 'pause':
        break
      case 'resume': {
        for (const message of this.#mail.release(inbox(node))) this.#hand(message)
        const waiting = this.#waitingTimers
        this.#waitingTimers = []
        for (const index of waiting) this.#timer(index)
        break
      }
      default:
        fault satisfies never
    }
  }

  /** The key was on the lost disk: a new identity, whose place in the order is next to the old one's. */
  #renew(node: number): void {
    this.labels[node] = `${this.#identities[node]}.${this.#population.life(node)}`
  }
}

/** Where messages for a paused node wait. */
function inbox(node: number): string {
  return `${node}`
}

/** Indices as text of equal length, so that their order as text is their order as numbers. */
function labelsOf({ nodes, labels, topology }: Scenario, random: Random): string[] {
  const numbers = Array.from({ length: nodes }, (_, i) => i + 1)
  if (labels === 'random') random.shuffle(numbers)
  if (labels === 'hub-highest') numbers[topology === 'path' ? nodes >> 1 : 0] = nodes + 1
  const width = String(nodes + 1).length
  return numbers.map(number => String(number).padStart(width, '0'))
}
