/** Prints the planner's table, and the plan beside the measured run. */
import { formatBytes } from '../../base/errors.js'
import { keepsAll } from '../../l2l/executor/types.js'
import type { DiskNeeds, ExecutionReport, LayerProfile, PartitionRow, Plan, planning } from '../../l2l/index.js'
import { recomputations } from '../../l2l/planning/times.js'
import { meanStepMs, planJson } from '../../l2l/planning/types.js'
import { print } from './output.js'

/** One line per layer, then the whole plan. */
export function showPlan(layers: readonly LayerProfile[], plan: Plan, batch: number): void {
  const head = ['layer', 'weights', 'output', 'activations', 'forward', 'backward', 'activations are', 'weights are']
  const varies = layers.some(layer => takesPart(layer) !== '')
  const isMixed = plan.layers.some(({ outputs = 'stash' }) => outputs !== 'stash')
  if (isMixed) head.push('outputs are')
  if (varies) head.push('takes part')
  const rows = layers.map((layer, l) => [
    layer.name,
    formatBytes(layer.weightBytes),
    formatBytes(batch * layer.outputBytes),
    formatBytes(batch * layer.activationBytes),
    milliseconds(batch * layer.forwardMs),
    milliseconds(batch * layer.vjpMs),
    activationsOf(plan, l),
    weightsOf(plan, l),
    ...(isMixed ? [outputsOf(plan, l)] : []),
    ...(varies ? [takesPart(layer)] : [])
  ])
  printTable([head, ...rows])
  print('')
  print(`schedule      ${plan.schedule}, microbatches of ${plan.microbatch}, ${stashOf(plan)}`)
  if (plan.pipeline) print(`pipeline      ${stagesOf(plan, layers.length)}`)
  const grows = layers.some(({ from }) => from > 0)
  print(`expected      ${expected(plan, plan.stepMs)}${grows ? ', once all layers take part' : ''}`)
}

/** The fastest plan of each schedule. */
export function showAlternatives(all: readonly { readonly schedule: string; readonly plan: Plan | undefined }[]): void {
  print('')
  const rows = all.map(({ schedule, plan }) =>
    plan === undefined
      ? [schedule, 'does not fit']
      : [
          schedule,
          milliseconds(plan.stepMs),
          `${plan.microbatch}`,
          formatBytes(plan.deviceBytes),
          `${plan.stash}${plan.stashBytes > 0 ? `, ${formatBytes(plan.stashBytes)}` : ''}`
        ]
  )
  printTable([['fastest of', 'step', 'microbatch', 'on a device', 'stash'], ...rows])
}

/** What each device of a group does, and how much faster the group is than one device. */
export function showGroup({ devices = [] }: Plan, speedup: ReturnType<typeof planning.speedupOf>): void {
  if (devices.length === 0) return
  print('')
  const rows = devices.map(({ speed, lineBytesPerMs, rows, computeMs, stepMs, receivedBytes, returnedBytes }, d) => [
    `${d + 1}`,
    speed.toFixed(2),
    lineBytesPerMs === undefined ? 'memory' : `${formatBytes(1000 * lineBytesPerMs)}/s`,
    `${rows}`,
    milliseconds(computeMs),
    milliseconds(stepMs),
    formatBytes(receivedBytes),
    formatBytes(returnedBytes)
  ])
  printTable([['device', 'speed', 'line', 'rows', 'computes', 'step', 'receives', 'returns'], ...rows])
  if (speedup === undefined) return
  const [expected, closedForm, ideal] = [speedup.expected, speedup.closedForm, speedup.ideal].map(n => n.toFixed(2))
  print(`speed-up      ${expected} expected, ${closedForm} by the closed form, at most ${ideal}`)
  if (speedup.sharded === undefined) return
  const { receivedBytes, ...sharded } = speedup.sharded
  const bounds = `${sharded.expected.toFixed(2)} expected, ${sharded.closedForm.toFixed(2)} by the closed form`
  print(`sharded feed  ${bounds}, ${formatBytes(receivedBytes)} from here (simulated only)`)
}

/** Bytes of a weight on the host with the most of them, if a network is divided among hosts. */
export function showPartition(rows: readonly PartitionRow[], hosts: number): void {
  print('')
  const head = [`bytes a weight, ${hosts} hosts`, 'state', 'one host', ...[1, 2, 3].map(level => `zero=${level}`)]
  printTable([head, ...rows.map(({ rule, state, bytes }) => [rule, ...[state, ...bytes].map(one => one.toFixed(2))])])
}

function printTable(rows: readonly (readonly string[])[]): void {
  const widths = rows[0].map((_, i) => Math.max(...rows.map(row => row[i]?.length ?? 0)))
  for (const row of rows)
    print(
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd()
    )
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
export function showOutcome(plan: Plan, { steps, stepMs, devicePeakBytes, bubble }: ExecutionReport): void {
  const whole = keepsAll(plan.schedule, plan.stash) ? stashOf(plan) : `${stashOf(plan)}, ${kept(plan)}`
  const how = plan.pipeline ? stagesOf(plan, plan.layers.length) : whole
  print(`plan            ${plan.schedule}, microbatches of ${plan.microbatch}, ${how}`)
  print(`expected        ${expected(plan, meanStepMs(plan, steps))}`)
  const waits = bubble === undefined ? '' : `, bubble ${(100 * bubble).toFixed(1)} %`
  print(`measured        ${stepMs.toFixed(1)} ms a step, ${formatBytes(devicePeakBytes)} on the device${waits}`)
}

/** The layers of each chunk, and how long stages wait. */
function stagesOf({ pipeline, stash, devices = [] }: Plan, layers: number): string {
  if (pipeline === undefined) return ''
  const { cut, microbatches, group, bubble, closedForm } = pipeline
  const chunks = cut.map((from, chunk) => `${from}–${(cut[chunk + 1] ?? layers) - 1}`)
  const [own, equal] = [bubble, closedForm].map(share => `${(100 * share).toFixed(1)} %`)
  const loaded = stash === 'host' ? `, each loaded for ${group} microbatch${group > 1 ? 'es' : ''} at a time` : ''
  const few =
    microbatches < devices.length * group ? '; fewer microbatches than stages: use a smaller --microbatch' : ''
  return `layers ${chunks.join(', ')}${loaded}; bubble ${own}, ${equal} with equal stages${few}`
}

function expected({ deviceBytes, stashBytes }: Plan, stepMs: number): string {
  const stash = stashBytes > 0 ? `, ${formatBytes(stashBytes)} of stash on the host` : ''
  return `${milliseconds(stepMs)} a step, ${formatBytes(deviceBytes)} on the device${stash}`
}

function activationsOf({ schedule, stash, layers }: Plan, l: number): string {
  const { activations = 'recomputed' } = layers[l]
  if (keepsAll(schedule, stash) || activations === 'device') return 'saved'
  if (l === layers.length - 1) return 'saved (last)'
  return activations === 'host' ? 'on the host' : activations
}

function weightsOf({ schedule, stash, layers, pipeline }: Plan, l: number): string {
  if (pipeline && stash === 'host') return 'loaded each time'
  if (keepsAll(schedule, stash) || l === layers.length - 1) return 'loaded once'
  if (layers[l].isResident) return 'resident'
  const again = recomputations(layers)[l]
  return again > 0 ? `loaded ${2 + again} times` : 'loaded twice'
}

function outputsOf({ layers, stash }: Plan, l: number): string {
  const { outputs } = layers[l]
  if (l === layers.length - 1) return ''
  return outputs === 'recomputed' ? outputs : `on the ${outputs === 'device' ? outputs : stash}`
}

function stashOf(plan: Plan): string {
  const { length } = planJson(plan).deviceOutputs
  return `stash on the ${plan.stash}${length > 0 ? `, of ${length} layers on the device` : ''}`
}

function kept(plan: Plan): string {
  const { keeps, offloads, unstashed, resident } = planJson(plan)
  const saved = `${keeps.length + offloads.length} layers save their activations`
  const onHost = offloads.length > 0 ? ` (${offloads.length} on the host)` : ''
  const again = unstashed.length > 0 ? `, ${unstashed.length} recompute their outputs` : ''
  return `${saved}${onHost}${again}, ${resident.length} keep their weights`
}
