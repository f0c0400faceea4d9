/**
 * The progressive table of a terminal: a line whenever the number of inputs reaches the next power of two, with the mean loss
 * since the last line and since the start, and the label and prediction of that input (the table of Vowpal Wabbit).
 */
import type { Outcome } from '../../learning/index.js'
import { formatNumber } from './output.js'

/** What a trainer has measured so far. */
export interface Measured {
  readonly inputs: number
  /** Sum of their weights. @default inputs */
  readonly weight?: number
  /** Mean loss of all inputs. */
  readonly averageLoss: number | undefined
  /** The newest outcome, if it is known. */
  readonly last: Outcome | undefined
}

const WIDTHS = [12, 13, 13, 15, 15] as const

export class ProgressTable {
  readonly #write: (line: string) => void
  readonly #nameOf: (label: number) => string
  /** Number of inputs of the next line. */
  #due = 1
  #inputs = 0
  /** Summed weight and loss at the last line. */
  #lineWeight = 0
  #lineLoss = 0

  /**
   * @param write receives each line, without a newline
   * @param classNames the names of the class numbers, if there are any
   */
  constructor(write: (line: string) => void, classNames?: readonly string[]) {
    this.#write = write
    this.#nameOf = label => classNames?.[label] ?? String(Number(label.toPrecision(6)))
  }

  /** Inputs until the next line is due, at least 1. */
  get left(): number {
    return Math.max(1, this.#due - this.#inputs)
  }

  /** Writes a line if one is due. */
  note(measured: Measured): void {
    this.#inputs = measured.inputs
    if (measured.inputs < this.#due) return
    if (this.#due === 1) this.#write(row(['inputs', 'since last', 'since start', 'label', 'prediction']))
    this.#line(measured)
    while (this.#due <= measured.inputs) this.#due *= 2
  }

  #line({ inputs, weight = inputs, averageLoss = 0, last }: Measured): void {
    const loss = averageLoss * weight
    const sinceLast = weight > this.#lineWeight ? (loss - this.#lineLoss) / (weight - this.#lineWeight) : 0
    const cells = last === undefined ? ['–', '–'] : [this.#nameOf(last.label), this.#nameOf(last.prediction)]
    this.#write(row([formatNumber(inputs), formatLoss(sinceLast), formatLoss(averageLoss), ...cells]))
    this.#lineLoss = loss
    this.#lineWeight = weight
  }
}

function row(cells: readonly string[]): string {
  return cells.map((cell, i) => shortened(cell).padStart(WIDTHS[i])).join('')
}

function shortened(text: string): string {
  return text.length > 13 ? `${text.slice(0, 12)}…` : text
}

/** Five decimals, or fewer for a loss of many digits. */
function formatLoss(loss: number): string {
  return Math.abs(loss) < 1000 ? loss.toFixed(5) : loss.toPrecision(6)
}
