/**
 * The last stage of a stream: the parts of a row's features that depend on other rows and on other features: standardisation, and
 * then products with numbers, which are those of the standardised numbers.
 */
import { RowBuffer, type Rows } from './rows.js'
import { type Cycles, RunningMoments, resolveScale, scaled } from './scale.js'
import { type Derived, Layout } from './schema/schema.js'
import { DAY_CYCLE, MONTH_CYCLE, WEEK_CYCLE, YEARS_10 } from './schema/times.js'
import type { ColumnSchema } from './types.js'

/** The state of the stage, which belongs to a model. */
export interface Scaling {
  /** Moments by which numbers are standardised. */
  readonly moments: RunningMoments
  /** Rows are scaled without being counted: for evaluation and prediction. */
  readonly frozen: boolean
}

/** What determines the stage. */
interface PreparationOptions {
  /** The columns of a table. */
  readonly schema: readonly ColumnSchema[] | undefined
  readonly hashBits: number | undefined
  readonly constant: boolean
  readonly scale: 'none' | 'standard' | 'auto'
}

export class Preparation {
  readonly #isStandard: boolean
  readonly #derived: Derived | undefined
  readonly #numbers: Float64Array
  readonly #shift: number
  readonly #cycles: Cycles | undefined
  readonly #scaled = new RowBuffer()
  readonly #made = new RowBuffer()

  private constructor(
    { schema, hashBits, constant }: PreparationOptions,
    private readonly scaling: Scaling,
    isStandard: boolean
  ) {
    this.#isStandard = isStandard
    this.#shift = constant ? 1 : 0
    const layout = schema && new Layout(schema, hashBits)
    this.#derived = layout?.derived
    this.#cycles = layout && cyclesOf(layout, this.#shift)
    this.#numbers = new Float64Array(layout === undefined ? 0 : layout.numbers)
  }

  /** @returns undefined if rows stay as they are */
  static for(
    options: PreparationOptions,
    scaling: Scaling = { moments: new RunningMoments(), frozen: false }
  ): Preparation | undefined {
    const isStandard = resolveScale(options.scale, options.schema) === 'standard'
    const derives = options.schema?.some(({ kind }) => kind === 'interaction') ?? false
    return isStandard || derives ? new Preparation(options, scaling, isStandard) : undefined
  }

  /** The rows of a stream, each after those before it. */
  async *rows(input: AsyncIterable<Rows>): AsyncGenerator<Rows> {
    for await (const rows of input) yield { ...this.scaled(rows), pass: rows.pass, positionAfter: rows.positionAfter }
  }

  /** Rows [from, to); the result is valid until the next call. @param frozen rows are not counted in the moments */
  scaled(rows: Rows, frozen = this.scaling.frozen, from = 0, to = rows.size): Rows {
    const { moments } = this.scaling
    const { products = [], slopes = [] } = this.#derived ?? {}
    const multiplies = products.length + slopes.length > 0
    const isCut = from > 0 || to < rows.size
    let [first, start, end] = [rows, from, to]
    if (this.#isStandard) {
      const scaling = { moments, frozen, cycles: this.#cycles }
      first = scaled(rows, scaling, this.#scaled, from, to, this.#shift > 0)
    } else if (isCut && !multiplies) first = this.#part(rows, from, to)
    if (!multiplies) return first
    if (this.#isStandard) [start, end] = [0, to - from]
    this.#made.clear()
    for (let row = start; row < end; row++) this.#multiply(first, row)
    return this.#made.view()
  }

  #part(rows: Rows, from: number, to: number): Rows {
    this.#scaled.clear()
    for (let row = from; row < to; row++) this.#scaled.append(rows, row, rows.numeric[row])
    return this.#scaled.view()
  }

  /** Appends a row with its products. A missing number is 0, its mean. */
  #multiply(rows: Rows, row: number): void {
    const { products, slopes } = this.#derived as Derived
    const out = this.#made
    const numbers = this.#numbers.fill(0)
    const [start, end] = [rows.offsets[row], rows.offsets[row + 1]]
    const numeric = rows.numeric[row]
    for (let p = start; p < start + numeric; p++) numbers[rows.indices[p] - this.#shift] = rows.values[p]
    out.reserve(1, end - start + products.length)
    const { indices, values, entries } = out
    let at = entries
    for (let p = start; p < end; p++) {
      indices[at] = rows.indices[p]
      values[at++] = rows.values[p]
    }
    for (const [i, { number }] of slopes.entries()) values[at - slopes.length + i] = numbers[number]
    for (const { feature, a, b } of products) {
      indices[at] = feature + this.#shift
      values[at++] = numbers[a] * numbers[b]
    }
    out.finish(rows, row, numeric, at)
  }
}

/** Cycles of the features of a time, in their order. */
const PART_CYCLES = [MONTH_CYCLE, MONTH_CYCLE, WEEK_CYCLE, WEEK_CYCLE, DAY_CYCLE, DAY_CYCLE]

/** The parts of times whose position the stream scales; undefined without such columns. */
function cyclesOf({ columns, hashedFrom }: Layout, shift: number): Cycles | undefined {
  const times = columns.filter(({ kind, mean }) => kind === 'time' && mean === undefined)
  if (times.length === 0) return undefined
  const positions = new Int32Array(hashedFrom + shift)
  const lengths = new Float64Array(hashedFrom + shift)
  for (const { feature } of times) {
    for (const [i, days] of PART_CYCLES.entries()) {
      positions[feature + 1 + i + shift] = feature + shift
      lengths[feature + 1 + i + shift] = days / YEARS_10
    }
  }
  return { positions, lengths }
}
