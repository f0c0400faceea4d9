/** A property that does not hold. Thrown where it is found, so that a run stops at the event that broke it. */
export class Violation extends Error {
  override readonly name = 'Violation'
  /** The property's name, as in docs/simulator.md. */
  readonly property: string

  /** @param detail who, what and when, in one line */
  constructor(property: string, detail: string) {
    super(`${property}: ${detail}`)
    this.property = property
  }
}
