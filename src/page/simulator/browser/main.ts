/** The simulator's page: what the worker reports, drawn at the time that the player shows. */
import { byId, drawLegend, html, keyed, setText } from '../../browser/dom.js'
import { TreeDrawing } from '../../browser/tree.js'
import { formatCount } from '../../format.js'
import type { TreeLayout } from '../../tree-layout.js'
import { commandOf } from '../controls.js'
import {
  describeNode,
  describeScene,
  type Frame,
  fixedLayout,
  Lineages,
  linesOf,
  type NodeRow,
  type RegretPoint,
  type Report,
  type Request,
  type Scene,
  sceneOf
} from '../scene.js'
import { ControlPanel, Player, RegretPlot, regretAt } from './panels.js'

const MAX_EVENTS = 60
/** Lines in the legend; the sentence above the drawing has their number. */
const MAX_LINES = 6

let worker: Worker | undefined
let frames: Frame[] = []
let serial: readonly RegretPoint[] = []
let lineages = new Lineages()
let layout: TreeLayout | undefined
let chosen: string | undefined
let shown = 0

const tree = new TreeDrawing<NodeRow>(byId('tree'), choose, describeNode)
const plot = new RegretPlot(byId('plot'))
const player = new Player(index => {
  shown = index
  draw()
})
const controls = new ControlPanel('crashes', start)

/** Starts the run that the controls describe. What was going on before ends. */
function start(): void {
  worker?.terminate()
  frames = []
  serial = []
  lineages = new Lineages()
  layout = undefined
  chosen = undefined
  shown = 0
  byId('problem').hidden = true
  setText(byId('hash'), '')
  setText(byId('scene'), 'The run begins.')
  player.reset()
  const request: Request = { values: controls.values, source: controls.name }
  worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' })
  worker.addEventListener('message', ({ data }: MessageEvent<Report>) => take(data))
  worker.addEventListener('error', ({ message }) => fail(message))
  worker.postMessage(request)
}

function take(report: Report): void {
  switch (report.kind) {
    case 'serial':
      serial = report.points
      break
    case 'start':
      layout = fixedLayout(report.shape)
      break
    case 'frames':
      frames.push(...report.frames)
      lineages.add(report.predictors)
      lineages.update(frames[frames.length - 1]?.held ?? new Int32Array(0))
      player.extend(frames.length)
      break
    case 'result': {
      const { violations, traceHash } = report.result
      const command = commandOf(controls.name, controls.changes)
      setText(byId('hash'), '')
      byId('hash').append(
        html('code', {}, command),
        ` makes the same run, with the trace hash `,
        html('code', { id: 'trace-hash' }, traceHash)
      )
      if (violations.length > 0) fail(`Violation of ${violations[0]}`)
      player.end()
      break
    }
    case 'failed':
      fail(report.message)
      break
    default:
      report satisfies never
  }
}

function fail(message: string): void {
  const problem = byId('problem')
  problem.hidden = false
  setText(problem, message)
}

function choose(id: string): void {
  chosen = chosen === id ? undefined : id
  draw()
}

function draw(): void {
  const frame = frames.at(shown)
  if (frame === undefined) return
  const scene = sceneOf(frame, lineages, layout)
  tree.draw(scene, chosen)
  const row = scene.peers.get(chosen ?? '')
  setText(byId('scene'), row === undefined ? describeScene(scene) : `Selected: ${describeNode(row)}.`)
  player.describe(`${formatTime(frame.time)}, ${formatCount(frame.inputs)} inputs`)
  drawTotals(frame, scene)
  drawLines(scene)
  drawEvents()
  plot.draw(frames, shown, serial)
}

function drawTotals({ time, inputs, regret }: Frame, { rows }: Scene): void {
  const alone = regretAt(serial, inputs)
  const ratio = alone === undefined || alone <= 0 ? '–' : (regret / alone).toFixed(2)
  const updates = rows.reduce((max, row) => Math.max(max, row.updates), 0)
  const figures = [
    ['Virtual time', formatTime(time)],
    ['Inputs', formatCount(inputs)],
    ['Updates', formatCount(updates)],
    ['Regret', formatCount(regret)],
    ['of one learner', alone === undefined ? '–' : formatCount(alone)],
    ['Ratio', ratio]
  ]
  keyed(
    byId('totals'),
    figures,
    ([name]) => name,
    ([name]) => html('div', {}, html('dt', {}, name), html('dd')),
    (element, [, value]) => setText(element.children[1], value)
  )
}

function drawLines(scene: Scene): void {
  const entries = linesOf(scene).map(({ group, nodes, updates }) => ({ group, count: nodes, updates }))
  drawLegend(byId('lines'), entries.slice(0, MAX_LINES), 'node')
}

function drawEvents(): void {
  const past = frames
    .slice(0, shown + 1)
    .flatMap(({ time, events }, frame) => events.map((text, index) => ({ key: `${frame} ${index}`, time, text })))
  keyed(
    byId('events'),
    past.slice(-MAX_EVENTS).reverse(),
    ({ key }) => key,
    ({ time, text }) =>
      html(
        'li',
        {},
        html('span', { class: 'symbol', 'aria-hidden': 'true' }, '·'),
        html('time', {}, formatTime(time)),
        html('span', { class: 'what' }, text)
      ),
    () => undefined
  )
}

function formatTime(ms: number): string {
  return `${ms < 100 ? ms.toFixed(1) : formatCount(ms)} ms`
}

for (const region of document.querySelectorAll<HTMLElement>('.scroll')) region.tabIndex = 0
// On a phone, the run comes first.
if (matchMedia('(max-width: 56rem)').matches) byId<HTMLDetailsElement>('settings').open = false
new ResizeObserver(() => player.redraw()).observe(byId('tree'))
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => player.redraw())
start()
