/** The records that a ledger writes to its journal. */
import type { Contributor } from '../state/coverage.js'
import type { PredictorId } from '../state/predictor-id.js'
import { exponentsAt, type LazyGrid } from '../state/rounding.js'
import { encodeUnsent, type KeptUnsent } from '../wire/unsent.js'
import type { JournalRecord, Segment } from './journal.js'
import type { Decision } from './past-epochs.js'

/** What determines the record of an epoch. */
interface BegunEpoch {
  readonly number: number
  readonly id: PredictorId
  readonly carried: readonly Segment[]
  readonly open: readonly Segment[]
  /** With a budget: grid of the predictor. */
  readonly grid: LazyGrid | undefined
  /** Segments that its lineage has used since the epoch with number `after`. */
  readonly decided: Pick<Decision, 'added' | 'after'> | undefined
}

const NONE: readonly JournalRecord[] = []

export class JournalRecords {
  readonly #run: Contributor
  #records: JournalRecord[] = []

  constructor(run: Contributor) {
    this.#run = run
  }

  /** The records since the last call. */
  take(): readonly JournalRecord[] {
    if (this.#records.length === 0) return NONE
    const records = this.#records
    this.#records = []
    return records
  }

  epoch({ number, id, carried, open, grid, decided }: BegunEpoch): void {
    const { incarnation, nonce } = this.#run
    this.#records.push({
      kind: 'epoch',
      number,
      id,
      incarnation,
      nonce,
      carried: carried.map(({ number }) => number),
      open: open.map(({ number }) => number),
      ...(grid && {
        steps: grid.map(exponents => exponentsAt(exponents, undefined)[0]),
        after: decided?.after,
        used: [...(decided?.added ?? [])].flatMap(([{ number, elements }, held]) =>
          elements > 0 ? [number, held.number] : []
        )
      })
    })
  }

  segment({ number, inputs, of }: Segment, epoch: number): void {
    const record = { kind: 'segment', number, epoch, inputs } as const
    this.#records.push(of === undefined ? record : { ...record, of: of.number })
  }

  dropped(before: number): void {
    this.#records.push({ kind: 'dropped', before })
  }

  /** @param retained segments with a sum */
  unsent(unsent: Omit<KeptUnsent, 'sums'>, retained: readonly Segment[]): void {
    const sums = retained.flatMap(({ number, sum, elements, taken }) =>
      sum && elements > 0 ? [{ number, place: taken?.number ?? 0, sum }] : []
    )
    this.#records.push({ kind: 'unsent', bytes: encodeUnsent({ ...unsent, sums }) })
  }
}
