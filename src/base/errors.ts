/** What users read: coded errors, notices, and the words in them. */

/**
 * Base class of the project's errors. A subclass sets the static `code`; `docs/reference/errors.md` lists all codes.
 *
 * @example
 * ```ts
 * export class OptionError extends CodedError {
 *   static override readonly code = 'ERR_OPTION'
 * }
 * ```
 */
export abstract class CodedError extends Error {
  declare static readonly code: string
  /** Stable identifier, `ERR_…`. */
  readonly code: string

  /** @param message one line that says what to do */
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = new.target.code
  }
}

/** The numbers of a predictor left the range of float32. */
export class DivergenceError extends CodedError {
  static override readonly code = 'ERR_DIVERGENCE'
}

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

/** The candidate with the smallest edit distance, if it is small enough for a typing error. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.ceil(word.length / 3) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word, candidate)
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]
}

/** Formats bytes as `--device-memory` accepts them: `96.0 kB`, `12.3 MB` from 2^20 bytes on, `1.50 GB` from 2^30. */
export function formatBytes(bytes: number): string {
  return format(bytes, 0)
}

/**
 * Formats a limit and the larger number of bytes that is needed, with as many digits as it takes to tell them apart.
 * @returns both; the latter is rounded up, so that it suffices if it is given as the limit
 */
export function formatExcess(limit: number, needed: number): readonly [limit: string, needed: string] {
  for (let extra = 0; ; extra++) {
    const texts = [format(limit, extra), format(needed, extra, Math.ceil)] as const
    if (texts[0] !== texts[1] || limit >= needed) return texts
  }
}

function format(bytes: number, extra: number, round = Math.round): string {
  const [power, digits, unit] = bytes < 2 ** 20 ? [10, 1, 'kB'] : bytes < 2 ** 30 ? [20, 1, 'MB'] : [30, 2, 'GB']
  const scale = 10 ** (digits + extra)
  return `${(round((bytes / 2 ** power) * scale) / scale).toFixed(digits + extra)} ${unit}`
}

const PROBLEMS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/EROFS|read-only file system/i, 'the file system is read-only'],
  [/ENOSPC|no space left/i, 'the disk is full'],
  [/EDQUOT|quota/i, 'the quota of the disk is used up'],
  [/EFBIG|file too large/i, 'the file is larger than allowed'],
  [/EACCES|EPERM|permission denied/i, 'permission is denied'],
  [/ENOTDIR|not a directory/i, 'a part of the path is a file'],
  [/EISDIR|is a directory/i, 'it is a directory'],
  [/ENOENT|no such file/i, 'there is no such file or folder'],
  [/EEXIST/, 'it exists already'],
  [/EMFILE|too many open files/i, 'too many files are open'],
  [/EIO/, 'the device reports an error']
]

/** Such as `EROFS: the file system is read-only`. @param error of the system, or a database's message about one */
export function fileProblem(error: unknown): string {
  const { code, message = String(error) } = (error ?? {}) as { readonly code?: unknown; readonly message?: string }
  const isOfSystem = typeof code === 'string' && /^E[A-Z]+$/.test(code)
  const [, words] = PROBLEMS.find(([pattern]) => pattern.test(isOfSystem ? code : message)) ?? []
  if (words === undefined) return isOfSystem ? code : message
  return isOfSystem ? `${code}: ${words}` : words
}
