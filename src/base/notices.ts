/** Notices: what was guessed of data or a run and could be wrong, or what was left out, in one line each. */

/** How much a notice matters. The largest ones come first. */
export const importance = {
  /** The result is probably useless, or not what it looks like. */
  useless: 4,
  /** Values or rows contradict what was inferred, so some were read wrongly. */
  contradiction: 3,
  /** Values, rows or columns were left out. */
  leftOut: 2,
  /** A guess that could be wrong. */
  guess: 1
} as const

/** A line with its importance. */
export interface Notice {
  readonly line: string
  readonly importance: number
}

/** Receives a notice. Without an importance, it is a line for the log about an event, such as that a file was rotated. */
export type OnNotice = (line: string, importance?: number) => void

/** Maximum number of notices that are shown. */
const MAX_NOTICES = 5

/** Collects notices, and shows the most important ones. */
export class Notices {
  readonly #all: (Notice & { isShown: boolean })[] = []
  readonly #print: (line: string) => void
  #shown = 0

  /** @param print shows a line to people */
  constructor(print: (line: string) => void) {
    this.#print = print
  }

  /** Adds a notice, each once. An event is shown at once. */
  readonly add: OnNotice = (line, importance) => {
    if (importance === undefined) this.#print(line)
    else if (!this.#all.some(one => one.line === line)) this.#all.push({ line, importance, isShown: false })
  }

  /** Shows the most important ones of those that were added since the last call. */
  show(): void {
    for (const notice of this.#sorted()) {
      if (notice.isShown || this.#shown >= MAX_NOTICES) continue
      notice.isShown = true
      this.#shown++
      this.#print(notice.line)
    }
  }

  /** The most important ones of all, at most five. */
  get lines(): readonly string[] {
    return this.#sorted()
      .slice(0, MAX_NOTICES)
      .map(({ line }) => line)
  }

  #sorted() {
    return this.#all.toSorted((a, b) => b.importance - a.importance)
  }
}
