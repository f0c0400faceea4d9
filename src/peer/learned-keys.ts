/**
 * Records which requests with a key have been learned, so that a repeated one is not learned again. The state is written to the journal together
 * with the inputs, and is small: the keys `split:NAME:NUMBER` of a sender are a number up to which all are learned and a few beyond it.
 */

/** Senders, or other keys, that are remembered. The one that was used longest ago is forgotten first. */
const MAX_SENDERS = 256
/** Numbers that a sender may be ahead of its lowest number that is not learned. Lower numbers count as learned. */
export const KEY_WINDOW = 64

interface Sender {
  /** The requests up to this number are learned. */
  through: number
  /** Greater numbers that are learned. */
  readonly beyond: Set<number>
  /** How many of their first inputs are learned, of requests that are being learned or were interrupted. */
  readonly partly: Map<number, number>
}

type SavedSender = readonly [through: number, beyond: readonly number[], partly: readonly (readonly [number, number])[]]

/** Notes what is learned of a request with a key. */
export interface KeyProgress {
  /** Number of the first inputs that were learned before; Infinity if all were. */
  readonly from: number
  /** The first `count` inputs are learned. */
  learned(count: number): void
  /** All inputs are learned. */
  end(): void
}

export class LearnedKeys {
  /** The one that was used longest ago first. */
  readonly #senders: Map<string, Sender>
  #isChanged = false

  /** @param stored what `take` returned in an earlier run */
  constructor(stored: string | undefined) {
    const saved = JSON.parse(stored ?? '[]') as readonly (readonly [string, SavedSender])[]
    this.#senders = new Map(
      saved.map(([name, [through, beyond, partly]]) => [
        name,
        { through, beyond: new Set(beyond), partly: new Map(partly) }
      ])
    )
  }

  /** A request with this key begins. Requests of a sender may be in progress at the same time. */
  begin(key: string): KeyProgress {
    const [, name = key, digits = '1'] = /^(split:.*):([1-9]\d{0,14})$/.exec(key) ?? []
    const number = Number(digits)
    const sender = this.#senders.get(name)
    const isLearned = sender !== undefined && (number <= sender.through || sender.beyond.has(number))
    return {
      from: isLearned ? Number.POSITIVE_INFINITY : (sender?.partly.get(number) ?? 0),
      learned: count => this.#change(name, ({ partly }) => partly.set(number, count)),
      end: () => {
        if (!isLearned) this.#change(name, one => complete(one, number))
      }
    }
  }

  /** The state as text if it has changed since the last call. */
  take(): string | undefined {
    if (!this.#isChanged) return undefined
    this.#isChanged = false
    const saved = [...this.#senders].map(([name, { through, beyond, partly }]): [string, SavedSender] => [
      name,
      [through, [...beyond], [...partly]]
    ])
    return JSON.stringify(saved)
  }

  #change(name: string, change: (sender: Sender) => void): void {
    const sender = this.#senders.get(name) ?? { through: 0, beyond: new Set(), partly: new Map() }
    change(sender)
    this.#isChanged = true
    this.#senders.delete(name)
    this.#senders.set(name, sender)
    const [oldest] = this.#senders.keys()
    if (this.#senders.size > MAX_SENDERS) this.#senders.delete(oldest)
  }
}

/** All inputs of a request are learned. */
function complete(sender: Sender, number: number): void {
  const { beyond, partly } = sender
  beyond.add(number)
  sender.through = Math.max(sender.through, number - KEY_WINDOW)
  while (beyond.has(sender.through + 1)) sender.through++
  for (const known of [beyond, partly]) for (const one of known.keys()) if (one <= sender.through) known.delete(one)
  partly.delete(number)
}
