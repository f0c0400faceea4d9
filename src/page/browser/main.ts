/** The page's entry: draws the events of the stream, at a rate that leaves the browser time for other work. */
import { lossOfBucket, rateOfBucket } from '../../view/names.js'
import type { NetworkSnapshot, NetworkTotals, NetworkUpdate, PeerRow } from '../../view/types.js'
import {
  formatBudget,
  formatBytes,
  formatCount,
  formatError,
  formatR2,
  formatRate,
  formatShare,
  measureOf,
  peerName,
  pooledR2
} from '../format.js'
import { NetworkState } from '../network-state.js'
import {
  describeMeasure,
  describeNetwork,
  describePeer,
  describeSchema,
  describeWindows,
  isNear,
  joinCommand,
  type LearnedSchema
} from '../sentences.js'
import { byId, drawLegend, html, keyed, setText } from './dom.js'
import { Connection, type ConnectionState, EventList } from './events.js'
import { Explorer, PeerTable } from './peers.js'
import { Histogram, LossPlot } from './plots.js'
import { TreeDrawing } from './tree.js'

/** Number of peers above which the tree takes the whole width. */
const LARGE_NETWORK = 16

const state = new NetworkState()
/** Server's clock minus this one's, in milliseconds. */
let clockOffset = 0
let chosen: string | undefined
let isDue = false
/** Minimum time until the next drawing, in milliseconds. */
let pause = 0

const tree = new TreeDrawing<PeerRow>(byId('tree'), choose, (row, { peers, self }) => describePeer(row, peers, self))
const table = new PeerTable(byId('peers'), choose)
const losses = new Histogram(byId('losses'), 'Recent loss', bucket =>
  String(Number(lossOfBucket(bucket).toPrecision(2)))
)
const rates = new Histogram(byId('rates'), 'Inputs per second', bucket =>
  String(Number(rateOfBucket(bucket).toPrecision(3)))
)
const events = new EventList(byId('events'), byId('announcer'))
const plots = [new LossPlot(byId('plot-inputs'), 'inputs', choose), new LossPlot(byId('plot-time'), 'time', choose)]
/** What the peer of the page says about itself; undefined for an observer. */
let own: { readonly schema: LearnedSchema; readonly status: OwnStatus } | undefined

/** Part of the answer of `GET /status`. */
interface OwnStatus {
  readonly data?: string
  readonly addresses: readonly string[]
  /** Whether it serves the join page. */
  readonly joinPage?: boolean
}

const connection = new Connection(tokenFromHash(), {
  state: showConnection,
  event: ({ event, data }) => {
    if (event === 'snapshot') {
      state.reset(JSON.parse(data) as NetworkSnapshot)
      void showLearned()
    } else if (event === 'update') state.apply(JSON.parse(data) as NetworkUpdate)
    else return
    clockOffset = state.at - Date.now()
    redraw()
  }
})

const explorer = new Explorer(connection, state, id => {
  chosen = id ?? chosen
  redraw()
})

/** Shows what is learned. An observer has no schema. */
async function showLearned(): Promise<void> {
  const isPeer = state.self !== undefined
  const [schema, status] = isPeer ? await Promise.all([connection.get('schema'), connection.get('status')]) : []
  own = schema && status ? { schema: schema as LearnedSchema, status: status as OwnStatus } : undefined
  // Links cannot carry the token.
  for (const link of document.querySelectorAll<HTMLElement>('#links a')) {
    const { needs } = link.dataset
    link.hidden = needs !== undefined && (connection.token !== undefined || (needs === 'peer' && !isPeer))
  }
  const element = byId('learned')
  element.hidden = own === undefined
  if (own !== undefined) setText(element, describeSchema(own.schema, own.status.data))
  redraw()
}

/** Reads the token from `#token=…` and removes it from the address. Browsers do not send this part of an address. */
function tokenFromHash(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? undefined
  if (token !== undefined) history.replaceState(null, '', location.pathname)
  return token
}

function choose(id: string): void {
  chosen = chosen === id ? undefined : id
  redraw()
}

function redraw(): void {
  if (isDue) return
  isDue = true
  setTimeout(() => {
    requestAnimationFrame(() => {
      isDue = false
      const start = performance.now()
      draw()
      // With a thousand peers, drawing must not take all of the browser's time.
      pause = 4 * (performance.now() - start)
    })
  }, pause)
}

function draw(): void {
  const { shown } = explorer
  if (chosen !== undefined && !state.peers.has(chosen) && !shown.peers.has(chosen)) chosen = undefined
  setText(byId('headline'), describeNetwork(state))
  setText(
    byId('whose'),
    state.at === 0
      ? ''
      : state.self === undefined
        ? 'seen by an observer'
        : `seen by ${peerName(state.self, state.peers)}`
  )
  for (const id of ['skip', 'links']) byId(id).hidden = state.at === 0
  drawTotals()
  drawMeasure()
  drawAlone()
  drawMarks()
  byId('reference-note').hidden = state.references.length === 0
  document.body.classList.toggle('many', (state.network?.peers ?? 0) > LARGE_NETWORK)
  tree.draw(shown, chosen)
  explorer.draw(chosen)
  drawDistribution()
  events.draw(state)
  for (const plot of plots) plot.draw(state, chosen)
  table.draw(shown, chosen, Date.now() + clockOffset)
  const windows = describeWindows(shown.peers.get(chosen ?? state.self ?? ''), shown.peers)
  byId('windows').hidden = windows === ''
  setText(byId('windows'), windows)
}

function drawTotals(): void {
  const totals = state.network
  if (totals === undefined) return
  const measure = measureOf(state.rows)
  const figures: readonly (readonly [string, string])[] = [
    ['Inputs', formatCount(totals.inputs)],
    ['Inputs per second', formatRate(totals.inputsPerSecond)],
    ['Updates', formatCount(totals.updates)],
    ...batchFigure(),
    [measure.name, formatError(measure, totals.loss)],
    [`Recent ${measure.noun}`, formatError(measure, totals.recentLoss)],
    ...r2Figure(),
    ...shareFigure('Accuracy', totals.accuracy),
    ...shareFigure('Recent accuracy', totals.recentAccuracy),
    ['Sent per second', formatBytes(totals.bytesPerSecond)],
    ...float32Figure(totals),
    ...privacyFigure(state.peers.get(state.self ?? ''))
  ]
  keyed(
    byId('totals'),
    figures,
    ([name]) => name,
    ([name]) => html('div', {}, html('dt', {}, name), html('dd')),
    (element, [, value]) => setText(element.children[1], value)
  )
}

/** Recent R², if all peers are known. */
function r2Figure(): readonly (readonly [string, string])[] {
  const r2 = state.isPartial ? undefined : pooledR2(state.rows.filter(({ alive }) => alive))
  return r2 === undefined ? [] : [['Recent R²', formatR2(r2)]]
}

/** Names what the plots show. */
function drawMeasure(): void {
  const measure = measureOf(state.rows)
  for (const element of document.querySelectorAll('.measure-name')) setText(element, measure.name)
  const hasR2 = state.rows.some(({ recent }) => recent?.r2 !== undefined)
  setText(
    byId('losses-title'),
    hasR2 ? 'Recent 1 − R² (share of the variance that is not predicted), from' : 'Recent loss, from'
  )
  setText(byId('measure'), describeMeasure(measure, own?.schema.label?.name))
}

/** How others join, while the peer of the page is the only one. */
function drawAlone(): void {
  const isAlone = (state.network?.peers ?? 0) <= 1 && state.rows.filter(({ alive }) => alive).length === 1
  const command = own && joinCommand(own.status.addresses, own.schema, own.status.data)
  const hasLink = own?.status.joinPage === true
  byId('alone').hidden = !isAlone || (command === undefined && !hasLink)
  byId('by-command').hidden = command === undefined
  byId('join-link').hidden = !hasLink
  byId('near').hidden = own === undefined || !own.status.addresses.every(isNear)
  setText(byId('join-command'), command ?? '')
}

/** What frames would take with float32 sums, if that is much more. */
function float32Figure({
  bytesPerSecond,
  float32BytesPerSecond
}: NetworkTotals): readonly (readonly [string, string])[] {
  return float32BytesPerSecond > 1.5 * bytesPerSecond ? [['With float32 sums', formatBytes(float32BytesPerSecond)]] : []
}

/** The current b of the page's own peer, and its range since the page was opened. */
function batchFigure(): readonly (readonly [string, string])[] {
  const batch = state.peers.get(state.self ?? '')?.batch
  if (batch === undefined || state.batches === undefined) return []
  const [min, max] = state.batches.map(formatCount)
  return [['Batch', min === max ? min : `${formatCount(batch)} (${min} to ${max})`]]
}

/** The budget of differential privacy of the peer that serves the page. */
function privacyFigure({ privacy }: Partial<PeerRow> = {}): readonly (readonly [string, string])[] {
  return privacy === undefined ? [] : [['Privacy spent', formatBudget(privacy)]]
}

/** Nothing for an unknown share. */
function shareFigure(name: string, share: number | undefined): readonly (readonly [string, string])[] {
  return share === undefined ? [] : [[name, formatShare(share)]]
}

function drawMarks(): void {
  const entries = state.groups.map(({ group, peers, updates }) => ({ group, count: peers, updates }))
  drawLegend(byId('marks'), entries, 'peer')
}

/** The distributions, in a network with more peers than can be compared in the table. */
function drawDistribution(): void {
  const { network } = explorer.shown
  const isShown = network !== undefined && network.peers > LARGE_NETWORK
  byId('distribution').hidden = !isShown
  if (!isShown) return
  losses.draw(network.losses)
  rates.draw(network.rates)
}

function showConnection(now: ConnectionState): void {
  const status = byId('connection')
  status.dataset.state = now.kind
  const needsToken = now.kind === 'token-required'
  byId('token-form').hidden = !needsToken
  // Without data, only the form is shown.
  for (const id of ['main', 'headline']) byId(id).hidden = needsToken && state.at === 0
  switch (now.kind) {
    case 'live':
      setText(status, 'Live')
      break
    case 'connecting':
      setText(status, 'Connecting')
      break
    case 'broken':
      setText(
        status,
        `Connection lost; retrying in ${Math.round(now.retryMs / 1000)} s. ${
          state.at === 0 ? 'No data yet.' : `The data is from ${new Date(state.at).toLocaleTimeString()}.`
        }`
      )
      break
    case 'token-required':
      setText(
        status,
        now.reason === '' ? 'This peer requires a token' : `This token does not open the page: ${now.reason}`
      )
      break
    default:
      now satisfies never
  }
}

byId<HTMLFormElement>('token-form').addEventListener('submit', event => {
  event.preventDefault()
  connection.token = byId<HTMLInputElement>('token').value.trim()
  showConnection({ kind: 'connecting' })
  void connection.open()
})
byId('copy').addEventListener('click', () => {
  void navigator.clipboard
    ?.writeText(byId('join-command').textContent ?? '')
    .then(() => setText(byId('copy'), 'Copied'))
})
// Scrollable regions need the focus to be scrolled with the keyboard.
for (const region of document.querySelectorAll<HTMLElement>('.scroll')) region.tabIndex = 0
new ResizeObserver(redraw).observe(document.body)
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw)
// The ages of statuses increase while no events arrive.
setInterval(() => {
  if (state.at > 0) redraw()
}, 1000)
void connection.open()
