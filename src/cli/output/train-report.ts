/** The output of `admb train`. */
import { formatBytes } from '../../base/errors.js'
import type { ExecutionReport, Plan } from '../../l2l/index.js'
import type { BaselineFigures, SerialReport, SerialTrainer } from '../../learning/index.js'
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
  readonly baseline?: BaselineFigures
  /** Of the first of several passes. */
  readonly firstPass?: SerialReport
  /** Inputs of the runs that this one continues. */
  readonly continues?: number
  readonly validation?: ValidationReport
  readonly device?: string
  readonly plan?: Plan
  readonly relay?: ExecutionReport
}

/** Prints the result of a run. @param flags with the `weights` that the stored predictor needs @param predictor where it is stored, as keys of the JSON output */
export function showTrained(
  { json, dir, weights }: { readonly json?: boolean; readonly dir?: string; readonly weights?: string },
  trainer: SerialTrainer,
  { seconds, skipped, data, notices, baseline, firstPass, continues, validation, device, plan, relay }: TrainCost,
  predictor: object
): void {
  const { inputs, weight, updates, averageLoss = 0, accuracy, unlabelled } = trainer.report()
  const metrics = trainer.metrics()
  const { drift } = trainer
  const inputsPerSecond = inputs / seconds
  if (json) {
    const skippedAll = skipped + unlabelled
    printJson({
      command: 'train',
      data,
      notices,
      inputs,
      ...(weight === inputs ? {} : { weight }),
      updates,
      averageLoss,
      accuracy,
      metrics,
      baseline,
      ...(firstPass && {
        firstPass: { inputs: firstPass.inputs, averageLoss: firstPass.averageLoss, accuracy: firstPass.accuracy }
      }),
      ...(continues !== undefined && { continues }),
      drift,
      validation,
      skipped: skippedAll,
      seconds,
      inputsPerSecond,
      device,
      plan,
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
