/** Where the time of a step goes: a model and a backend whose calls are timed by phase. */
import * as tf from '#tfjs'
import type { Layer, Model } from '../../src/nn/types.js'

export const PHASES = ['forward', 'backward', 'loss', 'transfer', 'optimizer', 'rest'] as const
export type Phase = (typeof PHASES)[number]

/** Milliseconds of each phase. A call within another one counts for the inner phase only. */
export class PhaseClock {
  readonly #ms = new Map<Phase, number>()
  #phase: Phase = 'rest'
  #since = 0

  /** Times a whole step. @returns the milliseconds of each phase */
  step(work: () => void): Readonly<Record<Phase, number>> {
    this.#ms.clear()
    this.#since = performance.now()
    work()
    this.#enter('rest')
    return Object.fromEntries(PHASES.map(phase => [phase, this.#ms.get(phase) ?? 0])) as Record<Phase, number>
  }

  in<T>(phase: Phase, work: () => T): T {
    const outer = this.#enter(phase)
    try {
      return work()
    } finally {
      this.#enter(outer)
    }
  }

  /** @returns the phase before */
  #enter(phase: Phase): Phase {
    const now = performance.now()
    const outer = this.#phase
    this.#ms.set(outer, (this.#ms.get(outer) ?? 0) + now - this.#since)
    this.#phase = phase
    this.#since = now
    return outer
  }

  /** The model with timed passes. The recomputation of a backward pass counts for that pass. */
  model(model: Model): Model {
    const phases = { forward: 'forward', forwardSaving: 'forward', vjp: 'backward' } as const satisfies Partial<
      Record<keyof Layer, Phase>
    >
    const head = timed(this, model.head, { lossAndGradient: 'loss' })
    return { ...model, head, layers: model.layers.map(layer => timed(this, layer, phases)) }
  }

  /** Times what the backend copies between host and device. Its kernels run when they are called. */
  watchTransfers(): void {
    const backend = tf.backend() as unknown as Record<string, (...args: unknown[]) => unknown>
    for (const method of ['write', 'move', 'readSync']) {
      const inner = backend[method].bind(backend)
      backend[method] = (...args) => this.in('transfer', () => inner(...args))
    }
  }
}

function timed<T extends object>(clock: PhaseClock, target: T, phases: Readonly<Partial<Record<keyof T, Phase>>>): T {
  return new Proxy(target, {
    get(of, key) {
      const value: unknown = Reflect.get(of, key, of)
      if (typeof value !== 'function') return value
      const phase = phases[key as keyof T]
      const call = (...args: unknown[]) => value.apply(of, args) as unknown
      return phase === undefined ? call : (...args: unknown[]) => clock.in(phase, () => call(...args))
    }
  })
}
