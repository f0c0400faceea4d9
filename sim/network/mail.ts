/** Messages on their way: in slots that are used again, and those that wait at a clog or a stopped process. */

export interface Message {
  readonly to: number
  readonly from: number
  readonly content: unknown
  /** Life of the receiver for which it was sent: a restarted node does not get what was on its way to the old one. */
  readonly life: number
}

export class Mail {
  readonly #messages: (Message | undefined)[] = []
  readonly #free: number[] = []
  readonly #held = new Map<string, Message[]>()

  /** @returns its slot */
  put(message: Message): number {
    const slot = this.#free.pop() ?? this.#messages.length
    this.#messages[slot] = message
    return slot
  }

  /** The message in a slot. */
  at(slot: number): Message {
    return this.#messages[slot] as Message
  }

  /** Takes the message out of its slot. */
  take(slot: number): Message {
    const message = this.at(slot)
    this.#messages[slot] = undefined
    this.#free.push(slot)
    return message
  }

  /** Keeps a message at that place, behind those that are there. */
  hold(place: string, message: Message): void {
    const held = this.#held.get(place)
    if (held === undefined) this.#held.set(place, [message])
    else held.push(message)
  }

  /** Takes out all that waits at that place, in order. */
  release(place: string): readonly Message[] {
    const held = this.#held.get(place) ?? []
    this.#held.delete(place)
    return held
  }
}
