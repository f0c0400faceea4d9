/** Prints the planner's table, and the plan beside the measured run. */
import { formatBytes } from '../../base/errors.js'
import type { DiskNeeds, ExecutionReport, LayerProfile, Plan } from '../../l2l/index.js'
import { meanStepMs } from '../../l2l/planning/types.js'
import { print } from './output.js'

/** One line per layer, then the whole plan. */
export function showPlan(layers: readonly LayerProfile[], plan: Plan, batch: number): void {
  const head = ['layer', 'weights', 'output', 'activations', 'forward', 'backward', 'activations are', 'weights are']
  const varies = layers.some(layer => takesPart(layer) !== '')
  const isMixed = plan.deviceOutputs.length + plan.unstashed.length > 0
  if (isMixed) head.push('outputs are')
  if (varies) head.push('takes part')
  const rows = layers.map((layer, l) => [
    layer.name,
    formatBytes(layer.weightBytes),
    formatBytes(batch * layer.outputBytes),
    formatBytes(batch * layer.activationBytes),
    milliseconds(batch * layer.forwardMs),
    milliseconds(batch * layer.vjpMs),
    activationsOf(plan, l, layers.length),
    weightsOf(plan, l, layers.length),
    ...(isMixed ? [outputsOf(plan, l, layers.length)] : []),
    ...(varies ? [takesPart(layer)] : [])
  ])
  const widths = head.map((word, i) => Math.max(word.length, ...rows.map(row => row[i].length)))
  for (const row of [head, ...rows])
    print(
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd()
    )
  print('')
  print(`schedule      ${plan.schedule}, microbatches of ${plan.microbatch}, ${stashOf(plan)}`)
  const grows = layers.some(({ from }) => from > 0)
  print(`expected      ${expected(plan, plan.stepMs)}${grows ? ', once all layers take part' : ''}`)
}

/** Memory of the parameter server, and what `--store disk` takes. */
export function showStore({ least, most, file }: DiskNeeds, rule: string): void {
  print(`on the host   ${formatBytes(most)} with ${rule}`)
  print(`--store disk  ${formatBytes(file)} on the disk, --host-memory of at least ${formatBytes(least)}`)
}

function milliseconds(ms: number): string {
  return `${ms.toFixed(ms > 0 && ms < 1 ? 3 : 1)} ms`
}

/** Empty for a layer that every step executes in its position. */
function takesPart({ share, from }: LayerProfile): string {
  const parts = [
    share < 1 ? `in ${(100 * share).toFixed(0)} % of the steps` : '',
    from > 0 ? `from update ${from} on` : ''
  ]
  return parts.filter(part => part !== '').join(', ')
}

/** The expected step beside the measured one. */
export function showOutcome(plan: Plan, { steps, stepMs, devicePeakBytes }: ExecutionReport): void {
  print(`plan            ${plan.schedule}, microbatches of ${plan.microbatch}, ${stashOf(plan)}, ${kept(plan)}`)
  print(`expected        ${expected(plan, meanStepMs(plan, steps))}`)
  print(`measured        ${stepMs.toFixed(1)} ms a step, ${formatBytes(devicePeakBytes)} on the device`)
}

function expected({ deviceBytes, stashBytes }: Plan, stepMs: number): string {
  const stash = stashBytes > 0 ? `, ${formatBytes(stashBytes)} of stash on the host` : ''
  return `${milliseconds(stepMs)} a step, ${formatBytes(deviceBytes)} on the device${stash}`
}

function activationsOf({ schedule, keeps, offloads }: Plan, l: number, layers: number): string {
  if (schedule.startsWith('baseline') || keeps.includes(l)) return 'saved'
  if (l === layers - 1) return 'saved (last)'
  return offloads.includes(l) ? 'on the host' : 'recomputed'
}

function weightsOf({ schedule, resident, unstashed }: Plan, l: number, layers: number): string {
  if (schedule.startsWith('baseline') || l === layers - 1) return 'loaded once'
  if (resident.includes(l)) return 'resident'
  return unstashed.includes(l) ? 'loaded 3 times' : 'loaded twice'
}

function outputsOf({ deviceOutputs, unstashed, stash }: Plan, l: number, layers: number): string {
  if (l === layers - 1) return ''
  if (unstashed.includes(l)) return 'recomputed'
  return `on the ${deviceOutputs.includes(l) ? 'device' : stash}`
}

function stashOf({ stash, deviceOutputs: { length } }: Plan): string {
  return `stash on the ${stash}${length > 0 ? `, of ${length} layers on the device` : ''}`
}

function kept({ keeps, offloads, unstashed, resident }: Plan): string {
  const saved = `${keeps.length + offloads.length} layers save their activations`
  const onHost = offloads.length > 0 ? ` (${offloads.length} on the host)` : ''
  const again = unstashed.length > 0 ? `, ${unstashed.length} recompute their outputs` : ''
  return `${saved}${onHost}${again}, ${resident.length} keep their weights`
}
