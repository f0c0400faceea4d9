/** The simulator's page: what the worker reports, drawn at the time that the player shows. */
import { byId, drawLegend, html, keyed, setText } from '../../browser/dom.js'
import { TreeDrawing } from '../../browser/tree.js'
import { formatCount } from '../../format.js'
import type { TreeLayout } from '../../tree-layout.js'
import { commandOf } from '../controls.js'
import { Lineages } from '../lineages.js'
import type { Frame, RegretPoint, Report, Request } from '../messages.js'
import { describeNode, describeScene, fixedLayout, linesOf, type NodeRow, type Scene, sceneOf } from '../scene.js'
import { ControlPanel } from './control-panel.js'
import { Player } from './player.js'
import { RegretPlot, regretAt } from './regret-plot.js'
import { SearchPanel } from './search-panel.js'

/** Frames per second: of a run, and of a violation, which has a frame for each event. */
const RUN_RATE = 15
const EVENT_RATE = 3
const MAX_EVENTS = 60
/** Lines in the legend; the sentence above the drawing has their number. */
const MAX_LINES = 6
const RUN_NOTE = 'Crashes, partitions and their ends up to the time above, newest first.'
const SEARCH_NOTE =
  'Above, the runs that violate the property, each shorter than the one before. Below, the events of the shortest one up to the time that is shown, newest first.'

let worker: Worker | undefined
let frames: Frame[] = []
let serial: readonly RegretPoint[] = []
let lineages = new Lineages()
let layout: TreeLayout | undefined
let chosen: string | undefined
let shown = 0
let tried = 0

const tree = new TreeDrawing<NodeRow>(byId('tree'), choose, describeNode)
const plot = new RegretPlot(byId('plot'))
const player = new Player(index => {
  shown = index
  draw()
})
const search = new SearchPanel(start)
const controls = new ControlPanel('crashes', start)

/** Starts the run that the controls describe, or the search. What was going on before ends. */
function start(): void {
  worker?.terminate()
  frames = []
  serial = []
  lineages = new Lineages()
  layout = undefined
  chosen = undefined
  shown = 0
  tried = 0
  const { repair } = search
  search.reset()
  document.body.classList.toggle('searching', repair !== undefined)
  byId('controls').inert = repair !== undefined
  byId('problem').hidden = true
  setText(byId('events-note'), repair === undefined ? RUN_NOTE : SEARCH_NOTE)
  setText(byId('hash'), '')
  setText(byId('scene'), repair === undefined ? 'The run begins.' : 'The search begins.')
  player.reset(repair === undefined ? RUN_RATE : EVENT_RATE)
  const request: Request =
    repair === undefined
      ? { kind: 'run', values: controls.values, source: controls.name }
      : { kind: 'search', repair, seed: 2 }
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
      // The frames of a violation are shown once the search has been.
      if (search.repair === undefined) player.extend(frames.length)
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
    case 'tried':
      tried = report.runs
      setText(byId('scene'), `Random runs without a violation: ${formatCount(tried)}.`)
      break
    case 'violation':
      search.add(report.found)
      break
    case 'searched':
      search.afterwards(() => showViolation(report.violation))
      break
    case 'failed':
      fail(report.message)
      break
    default:
      report satisfies never
  }
}

function showViolation(violation: string | undefined): void {
  if (violation === undefined) {
    fail(`No violation in ${formatCount(tried)} random runs.`)
    return
  }
  fail(`Without “${search.title}”: violation of ${violation}`)
  player.extend(frames.length)
  player.end()
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
  if (search.repair === undefined) plot.draw(frames, shown, serial)
}

function drawTotals({ time, inputs, regret }: Frame, { rows }: Scene): void {
  const alone = regretAt(serial, inputs)
  const ratio = alone === undefined || alone <= 0 ? '–' : (regret / alone).toFixed(2)
  const updates = rows.reduce((max, row) => Math.max(max, row.updates), 0)
  const figures = [
    ['Virtual time', formatTime(time)],
    ['Inputs', formatCount(inputs)],
    ['Updates', formatCount(updates)],
    ...(search.repair === undefined
      ? [
          ['Regret', formatCount(regret)],
          ['of one learner', alone === undefined ? '–' : formatCount(alone)],
          ['Ratio', ratio]
        ]
      : [['Event', `${formatCount(shown + 1)} of ${formatCount(frames.length)}`]])
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

for (const region of document.querySelectorAll<HTMLElement>('.scroll, .shrinking')) region.tabIndex = 0
// On a phone, the run comes first.
if (matchMedia('(max-width: 56rem)').matches) byId<HTMLDetailsElement>('settings').open = false
new ResizeObserver(() => player.redraw()).observe(byId('tree'))
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => player.redraw())
start()
