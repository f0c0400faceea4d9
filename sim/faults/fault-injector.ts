/** Carries faults out: what each does to the network, to a node, and to those that were connected with it. */
import type { Transport } from '../network/transport.js'
import type { Wiring } from '../wiring/wiring.js'
import type { Algorithm, Disk } from '../world.js'
import type { NodeFault, Population } from './population.js'
import type { Fault } from './schedule.js'

/** What faults strike. */
export interface Targets {
  readonly population: Population
  readonly transport: Transport
  readonly wiring: Wiring
  readonly algorithm: Algorithm
  /** Identities of the nodes at present. */
  readonly labels: string[]
}

export class FaultInjector {
  readonly #targets: Targets
  /** Labels as they were at the start. */
  readonly #identities: readonly string[]
  /** What the timers of stopped processes are to do when those go on. */
  readonly #postponed = new Map<number, (() => void)[]>()

  constructor(victims: Targets) {
    this.#targets = victims
    this.#identities = [...victims.labels]
  }

  /** @param fault one that the population has taken, if it is about a node */
  strike(fault: Fault): void {
    const { transport, wiring } = this.#targets
    const { reach } = transport
    switch (fault.kind) {
      case 'partition':
        reach.partition(fault)
        transport.release()
        break
      case 'heal':
        reach.heal()
        transport.release()
        break
      case 'clog':
        reach.clog(fault.from, fault.to)
        break
      case 'unclog':
        reach.unclog(fault.from, fault.to)
        transport.release()
        break
      case 'link':
        wiring.link(fault.from, fault.to)
        break
      case 'unlink':
        wiring.unlink(fault.from, fault.to)
        break
      default:
        this.#strikeNode(fault)
    }
  }

  /** Does what is due at a node: now, when its stopped process goes on, or never. */
  whenUp(node: number, act: () => void): void {
    const { population } = this.#targets
    if (node < 0 || population.isUp(node)) act()
    else if (population.isPaused(node)) {
      const postponed = this.#postponed.get(node)
      if (postponed === undefined) this.#postponed.set(node, [act])
      else postponed.push(act)
    }
  }

  #strikeNode(fault: NodeFault): void {
    const { node } = fault
    switch (fault.kind) {
      case 'crash':
        this.#stop(node, fault.silent ? 'silent' : 'crash')
        break
      case 'leave':
        this.#stop(node, 'leave')
        break
      case 'restart':
        this.#start(node, fault.disk)
        break
      case 'join':
        this.#start(node, 'lost')
        break
      case 'pause':
        break
      case 'resume': {
        this.#targets.transport.open(node)
        const postponed = this.#postponed.get(node) ?? []
        this.#postponed.delete(node)
        for (const act of postponed) act()
        break
      }
      default:
        fault satisfies never
    }
  }

  #stop(node: number, how: 'crash' | 'silent' | 'leave'): void {
    const { transport, wiring, algorithm } = this.#targets
    this.#postponed.delete(node)
    transport.drop(node)
    wiring.stopped(node, how)
    algorithm.crash(node)
  }

  #start(node: number, disk: Disk): void {
    const { population, wiring, algorithm, labels } = this.#targets
    const life = population.life(node)
    // The key was on the disk: a new identity, whose place in the order is next to the old one's.
    if (disk === 'lost' && life > 0) labels[node] = `${this.#identities[node]}.${life}`
    algorithm.restart(node, disk)
    wiring.started(node)
  }
}
