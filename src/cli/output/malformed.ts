/** Skipped inputs: the first few are printed on stderr, all are counted by reason, and too many fail the command. */
import { CodedError } from '../../base/errors.js'
import type { Malformed } from '../../data/index.js'
import { formatNumber } from './output.js'

/** Largest share of skipped inputs without `--skip-limit`. */
const DEFAULT_SKIP_LIMIT = 0.01
/** Lines printed on stderr. */
const MAX_LINES = 10
/** Distinct reasons that are counted. */
const MAX_REASONS = 100

/** More inputs were skipped than `--skip-limit` allows. */
export class SkippedInputsError extends CodedError {
  static override readonly code = 'ERR_SKIPPED_INPUTS'
}

/** The data had no input that could be used. */
export class NoInputsError extends CodedError {
  static override readonly code = 'ERR_NO_INPUTS'
}

interface Reason {
  readonly first: Malformed
  count: number
}

export class SkippedInputs {
  #skipped = 0
  readonly #reasons = new Map<string, Reason>()
  readonly #shards: number

  /** @param shard the part of the data that is used. Malformed inputs of all shards are reported. */
  constructor(shard?: { readonly count: number }) {
    this.#shards = shard?.count ?? 1
  }

  /** The handler for a stream's `onMalformed`. */
  readonly add = (malformed: Malformed): void => {
    const { reason } = malformed
    if (this.#skipped++ < MAX_LINES) process.stderr.write(`${located(malformed)}\n`)
    if (this.#skipped === MAX_LINES) process.stderr.write('further malformed inputs are only counted\n')
    // Reasons that differ in a value only are the same reason.
    const kind = reason.replace(/"[^"]*"|'[^']*'|[-+]?\d[\d.e+-]*/g, '…')
    const found = this.#reasons.get(kind)
    if (found !== undefined) found.count++
    else if (this.#reasons.size < MAX_REASONS) this.#reasons.set(kind, { first: malformed, count: 1 })
  }

  /**
   * Fails if no input could be used.
   * @param data the name of the data, for the message
   * @param inputs number of inputs that were used
   * @param unlabelled number of further inputs that were skipped because they have no label
   * @throws NoInputsError
   */
  requireInputs(data: string, inputs: number, unlabelled = 0): void {
    if (inputs > 0) return
    const skipped = this.#skipped + unlabelled
    if (skipped === 0) throw new NoInputsError(`${data}: there are no inputs: check the file and --limit`)
    throw new NoInputsError(`${data}: all ${formatNumber(skipped)} inputs were skipped${this.#advice(unlabelled)}`)
  }

  /**
   * Fails if too many inputs were skipped. Parameters as for `requireInputs`.
   * @param limit largest share of inputs that may be skipped
   * @throws SkippedInputsError
   */
  checkLimit(data: string, inputs: number, unlabelled: number, limit = DEFAULT_SKIP_LIMIT): void {
    // All counts are of all shards, which are equally large.
    const skipped = this.#skipped + unlabelled * this.#shards
    const all = inputs * this.#shards + skipped
    const share = skipped / all
    if (!(share > limit)) return
    const about = this.#shards > 1 ? 'about ' : ''
    const counts = `${about}${formatNumber(skipped)} of ${formatNumber(all)} inputs (${(100 * share).toFixed(1)} %)`
    const allowed = Math.min(1, Math.ceil(100 * share) / 100)
    throw new SkippedInputsError(
      `${data}: ${counts} were skipped${this.#advice(unlabelled)}, or allow it with --skip-limit ${allowed}`
    )
  }

  /** The most frequent reason with its first place. */
  #advice(unlabelled: number): string {
    const [most] = [...this.#reasons.values()].sort((a, b) => b.count - a.count)
    if (most === undefined || most.count < unlabelled) return ' because they have no label: check --label'
    return `, ${formatNumber(most.count)} of them like ${located(most.first)}: check the options of the model and the data`
  }
}

/** The reason with its place. Line 0 is not known. */
function located({ source, line, column, reason }: Malformed): string {
  return line === 0 ? `${source}: ${reason}` : `${source}:${line}:${column}: ${reason}`
}
