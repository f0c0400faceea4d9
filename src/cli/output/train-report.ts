/** The output of `admb train`: its progress and its report. */
import { formatBytes } from '../../base/errors.js'
import { planJson } from '../../l2l/planning/types.js'
import type { Outcome, SerialReport } from '../../learning/index.js'
import type { TrainingJob } from '../../task/training-job.js'
import type { ValidationReport } from '../training/validation.js'
import { baselineLine, driftSummary, figureLines, summary, windowLines } from './metric-lines.js'
import { formatMean, formatNumber, print, printJson, timeLeft } from './output.js'
import { showOutcome } from './plan-table.js'

/** The line of progress. @param start in milliseconds of `performance.now` @param share of the data that has been read */
export function progressLine(
  { inputs, averageLoss, accuracy }: SerialReport,
  start: number,
  share: number | undefined
): string {
  const seconds = (performance.now() - start) / 1000
  const hits = accuracy === undefined ? '' : `, accuracy ${(100 * accuracy).toFixed(2)} %`
  const rate = `${formatNumber(inputs / seconds)} inputs/s`
  return `${formatNumber(inputs)} inputs, loss ${formatMean(averageLoss, inputs, 4)}${hits}, ${rate}${timeLeft(share, seconds)}`
}

/** What a run has used and found besides the losses. */
export interface TrainCost {
  readonly seconds: number
  readonly skipped: number
  /** What was inferred of the data. */
  readonly data: string | undefined
  readonly notices: readonly string[]
  /** Report of the first of several passes. */
  readonly firstPass?: SerialReport
  /** Inputs of the runs that this one continues. */
  readonly continues?: number
  readonly validation?: ValidationReport
}

/** Prints the result of a run. @param flags with the `weights` that the stored predictor needs @param predictor where it is stored, as keys of the JSON output */
export function showTrained(
  { json, dir, weights }: { readonly json?: boolean; readonly dir?: string; readonly weights?: string },
  job: TrainingJob,
  { seconds, skipped, data, notices, firstPass, continues, validation }: TrainCost,
  predictor: object
): void {
  const { inputs, weight, updates, averageLoss = 0, accuracy, unlabelled, metrics, baseline } = job.report()
  const { drift } = job.trainer
  const { device, plan } = job.network
  const relay = job.network.report?.()
  const inputsPerSecond = inputs / seconds
  if (json) {
    const skippedAll = skipped + unlabelled
    printJson({
      command: 'train',
      data,
      notices,
      inputs,
      weight: weight === inputs ? undefined : weight,
      updates,
      averageLoss,
      accuracy,
      metrics,
      baseline,
      firstPass: firstPass && {
        inputs: firstPass.inputs,
        averageLoss: firstPass.averageLoss,
        accuracy: firstPass.accuracy
      },
      continues,
      drift,
      validation,
      skipped: skippedAll,
      seconds,
      inputsPerSecond,
      device,
      plan: plan && planJson(plan),
      relay,
      predictor
    })
    return
  }
  if (data !== undefined) print(`data            ${data}`)
  print(
    `inputs          ${formatNumber(inputs)}${skipped > 0 ? ` (${formatNumber(skipped)} malformed inputs skipped)` : ''}`
  )
  if (weight !== inputs) print(`weight          ${formatNumber(weight)}`)
  print(`updates         ${formatNumber(updates)}`)
  print(`average loss    ${formatMean(averageLoss, inputs)}   (${scoredHow(firstPass, continues)})`)
  if (accuracy !== undefined) print(`accuracy        ${(100 * accuracy).toFixed(2)} %`)
  if (firstPass !== undefined) print(`first pass      ${firstPassOf(firstPass)}`)
  if (baseline !== undefined) print(baselineLine(baseline, 16))
  if (metrics !== undefined)
    for (const line of [...figureLines(metrics.total, 16), ...windowLines(metrics, 16)]) print(line)
  if (drift !== undefined && drift.alarms > 0) print(`drift           ${driftSummary(drift)}`)
  if (validation !== undefined) {
    const { best, passes, metrics } = validation
    print(`validation      ${summary(metrics)}, best after pass ${best} of ${passes}`)
  }
  print(`time            ${seconds.toFixed(2)} s, ${formatNumber(inputsPerSecond)} inputs/s`)
  if (device !== undefined) print(`device          ${device}`)
  if (relay !== undefined) {
    const { stepMs, exposedMs, devicePeakBytes, hostPeakBytes, dropped, workers, lostSteps } = relay
    print(`step            ${stepMs.toFixed(1)} ms, ${exposedMs.toFixed(1)} ms of it waiting for the parameter server`)
    print(
      `memory          ${formatBytes(devicePeakBytes)} on the device, ${formatBytes(hostPeakBytes)} on the host, peak`
    )
    if (workers > 1) print(`devices         ${workers} at the end, each with this memory`)
    if (lostSteps > 0) print(`lost            ${lostSteps} steps of failed devices`)
    if (plan) showOutcome(plan, relay)
    if (dropped > 0) print(`dropped         ${dropped} gradients that were not finite`)
  }
  const frozen = weights === undefined ? '' : ` --weights ${weights}`
  if (dir !== undefined) print(`stored in       ${dir}   (try: admb eval --dir ${dir}${frozen} --data FILE)`)
}

/** What the average loss is a mean of. It is progressive in one pass over inputs that are new. */
function scoredHow(firstPass: SerialReport | undefined, continues: number | undefined): string {
  if (firstPass !== undefined) return 'of all passes: from the second on, inputs were learned before they were scored'
  if (continues === undefined || continues === 0) return 'each input scored before it was learned'
  return `continues a predictor of ${formatNumber(continues)} inputs: those that are among them were learned before they were scored`
}

function firstPassOf({ inputs, averageLoss, accuracy }: SerialReport): string {
  const hits = accuracy === undefined ? '' : `, ${(100 * accuracy).toFixed(2)} % correct`
  return `loss ${formatMean(averageLoss, inputs)}${hits} (each input scored before it was learned)`
}

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
