/** The join page: this tab becomes a peer of the network of the peer that has served the page. */
import {
  checkModel,
  dialable,
  type JoinOffer,
  joinNetwork,
  type LearningSpec,
  type Peer,
  schemaOf,
  specOf
} from '../../../browser/index.js'
import type { PeerRow } from '../../../view/types.js'
import { byId, html, keyed, setText } from '../../browser/dom.js'
import { LossPlot } from '../../browser/plots.js'
import { TreeDrawing } from '../../browser/tree.js'
import { formatCount, formatError, formatShare, measureOf } from '../../format.js'
import { NetworkState } from '../../network-state.js'
import { describeMeasure, describeNetwork, describePeer, describeSchema } from '../../sentences.js'
import { imageRow, originAddress, type Rows } from '../requests.js'
import { digitRows, Feeder, fileRows, Pad, typedRows } from './inputs.js'

/** Rows a second. */
const RATE = 100
const PIXELS = 28 * 28
/** Answers to rows that were typed. */
const MOST_ANSWERS = 20

const state = new NetworkState()
const tree = new TreeDrawing<PeerRow>(
  byId('tree'),
  () => {},
  (row, { peers, self }) => describePeer(row, peers, self)
)
const plot = new LossPlot(byId('plot'), 'inputs')
const form = byId<HTMLFormElement>('choices')

let peer: Peer | undefined
let labelName: string | undefined
let feeder: Feeder | undefined
let rows = new AbortController()

function showProblem(error: unknown): void {
  const { message } = error as Error
  setText(byId('problem'), `${message.charAt(0).toUpperCase()}${message.slice(1)}.`.replace(/\.\.$/, '.'))
  byId('problem').hidden = false
}

function showState(kind: 'connecting' | 'live' | 'broken', text: string): void {
  byId('state').dataset.state = kind
  setText(byId('state'), text)
}

/** Whether the model takes the built-in digits. */
function takesDigits({ dimension, classes, features }: LearningSpec): boolean {
  const pixels = dimension - (features.constant ? 1 : 0)
  return pixels === PIXELS && classes === 10 && features.columns === undefined && features.classNames === undefined
}

/** An example of a row that the model takes, for the field of typed rows. */
function exampleRow(spec: LearningSpec): string {
  const { columns, label } = schemaOf(spec)
  const answer = label?.kind === 'number' ? 1.5 : (label?.names?.[0] ?? 0)
  if (columns === undefined) return `${answer} 1:0.5 2:1`
  const given = columns.filter(({ role, kind }) => role === undefined && kind !== 'ignored').slice(0, 3)
  return JSON.stringify({ ...Object.fromEntries(given.map(({ name }) => [name, 0])), [label?.name ?? 'label']: answer })
}

/** The key of a network, in the link that one of its members has given away. Browsers do not send this part to servers. */
function keyFromLink(): Uint8Array | undefined {
  const key = new URLSearchParams(location.hash.slice(1)).get('key')
  return key === null ? undefined : new TextEncoder().encode(`/key/swarm/psk/1.0.0/\n/base16/\n${key}\n`)
}

/** The invitation in the link. */
function invitationFromLink(): string | undefined {
  return new URLSearchParams(location.hash.slice(1)).get('invitation') ?? undefined
}

async function load(): Promise<void> {
  const response = await fetch('join.json', { cache: 'no-store' })
  if (!response.ok) throw new Error(`the peer has no offer to join its network (HTTP status ${response.status})`)
  const offer = (await response.json()) as JoinOffer
  const spec = specOf(offer)
  labelName = schemaOf(spec).label?.name
  setText(byId('learned'), describeSchema(schemaOf(spec), offer.data).replace('This peer learns', 'The network learns'))
  byId('key-fact').hidden = !offer.needsKey
  if (offer.isClosed && !offer.takesInvitations)
    throw new Error('this network admits only certain peers: ask its members for a place in their list')
  if (offer.isClosed && invitationFromLink() === undefined)
    throw new Error('this network admits only invited peers: ask a member for a link with an invitation')
  if (offer.needsKey && keyFromLink() === undefined)
    throw new Error('this network has a key: ask a member for the whole link')
  await checkModel(offer)
  const hasDigits = takesDigits(spec)
  byId('digits-choice').hidden = !hasDigits
  byId('drawn').hidden = !hasDigits
  byId<HTMLTextAreaElement>('typed').placeholder = exampleRow(spec)
  choose(hasDigits ? 'digits' : 'file')
  byId<HTMLButtonElement>('join').disabled = false
  showState('connecting', 'Not joined yet')
  form.addEventListener('submit', event => {
    event.preventDefault()
    void submit(offer).catch(showProblem)
  })
  if (hasDigits) drawDigits()
}

function choose(value: string): void {
  const radio = form.querySelector<HTMLInputElement>(`input[value="${value}"]`)
  if (radio) radio.checked = true
  showChoice()
}

function chosen(): string {
  return new FormData(form).get('from') as string
}

function showChoice(): void {
  byId('file-part').hidden = chosen() !== 'file'
  byId('typed-part').hidden = chosen() !== 'typed'
  byId('predict').hidden = peer === undefined || chosen() !== 'typed'
  setText(byId('join'), peer === undefined ? 'Join and learn' : 'Learn')
}

async function submit(offer: JoinOffer): Promise<void> {
  byId('problem').hidden = true
  const from = chosen()
  const file = byId<HTMLInputElement>('file').files?.[0]
  const typed = byId<HTMLTextAreaElement>('typed').value
  if (from === 'file' && file === undefined) throw new Error('choose a file first')
  if (from === 'typed' && typed.trim() === '') throw new Error('type a row first')
  byId<HTMLButtonElement>('join').disabled = true
  try {
    const joined = peer ?? (await join(offer))
    if (from === 'typed') await learnTyped(joined, typed, 'learn')
    else feed(joined, from === 'digits' ? digitRows : signal => untilAborted(fileRows(file as File), signal))
  } finally {
    byId<HTMLButtonElement>('join').disabled = false
  }
}

async function* untilAborted<T>(items: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  for await (const item of items) {
    if (signal.aborted) return
    yield item
  }
}

async function join(offer: JoinOffer): Promise<Peer> {
  showState('connecting', 'Joining')
  const name = byId<HTMLInputElement>('name').value.trim()
  const started = await joinNetwork(offer, {
    peers: [...new Set([originAddress(location, offer.id), ...dialable(offer)])].slice(0, 1),
    name: name === '' ? 'a tab' : name,
    networkKey: keyFromLink(),
    invitation: offer.isClosed ? invitationFromLink() : undefined,
    dir: byId<HTMLInputElement>('keep').checked ? await stateOf(offer) : undefined,
    log: (level, message) => {
      if (level === 'error') showProblem(new Error(message))
    }
  })
  peer = started
  for (const id of ['own', 'place', 'losses', 'leave']) byId(id).hidden = false
  for (const id of ['name', 'keep']) byId<HTMLInputElement>(id).disabled = true
  state.reset(started.view.snapshot())
  started.view.subscribe(update => {
    state.apply(update)
    draw()
  })
  started.on('status', draw)
  started.on('failed', (error: Error) => {
    ended()
    showProblem(error)
  })
  showChoice()
  draw()
  return started
}

/** The name of the state in IndexedDB: of this network and this model. */
async function stateOf({ spec, networkId = '' }: JoinOffer): Promise<string> {
  let hash = 5381
  for (const character of spec) hash = (Math.imul(hash, 33) ^ character.charCodeAt(0)) >>> 0
  return `join ${networkId} ${hash.toString(16)}`
}

function feed(to: Peer, open: (signal: AbortSignal) => AsyncIterable<Rows>): void {
  feeder?.stop()
  rows.abort()
  rows = new AbortController()
  feeder = new Feeder(to, open(rows.signal), RATE, ({ learned, refused, reason, ended, problem }) => {
    if (problem !== undefined) {
      setText(byId('fed'), learned > 0 ? `${formatCount(learned)} rows learned.` : '')
      showProblem(new Error(problem))
      return
    }
    const parts = [`${formatCount(learned)} rows learned`]
    if (refused > 0) parts.push(`${formatCount(refused)} refused`)
    if (reason !== undefined) parts.push(`the last reason: ${reason}`)
    if (ended) parts.push('no further rows')
    setText(byId('fed'), `${parts.join('; ')}.`)
  })
}

async function learnTyped(to: Peer, text: string, action: 'learn' | 'predict'): Promise<void> {
  const answers: string[] = []
  for (const { format, text: body } of typedRows(text)) {
    const { predictions } = await to.request({ action, format, body: new TextEncoder().encode(body) })
    for (const prediction of predictions) {
      answers.push('error' in prediction ? prediction.error : `predicted ${prediction.label}`)
    }
  }
  setText(byId('fed'), action === 'learn' ? `${formatCount(answers.length)} rows learned.` : '')
  setText(byId('answers'), answers.slice(0, MOST_ANSWERS).join('\n'))
  byId('answers').hidden = false
}

function draw(): void {
  if (peer === undefined) return
  const { inputs, updates, averageLoss, accuracy, metrics, neighbours } = peer.status()
  const measure = measureOf(state.rows)
  const figures: [string, string][] = [
    ['Rows learned', formatCount(inputs)],
    [measure.name, inputs === 0 ? '–' : formatError(measure, averageLoss)],
    [`${measure.name} of the last 1,000`, formatError(measure, metrics?.recent[0]?.loss)],
    ...(accuracy === undefined || inputs === 0 ? [] : [['Accuracy', formatShare(accuracy)] as [string, string]]),
    ['Updates of the predictor', formatCount(updates)],
    ['Neighbours', formatCount(neighbours.length)]
  ]
  keyed(
    byId('totals'),
    figures,
    ([name]) => name,
    ([name]) => html('div', {}, html('dt', {}, name), html('dd')),
    (element, [, value]) => setText(element.children[1], value)
  )
  if (neighbours.length > 0) showState('live', 'Joined')
  else showState('connecting', 'Looking for a neighbour')
  setText(byId('headline'), `${describeNetwork(state)}.`)
  tree.draw(state, undefined)
  plot.draw(state, undefined)
  setText(byId('measure'), describeMeasure(measure, labelName))
}

function drawDigits(): void {
  const scores = Array.from({ length: 10 }, (_, digit) =>
    html('meter', { min: 0, max: 1, 'aria-label': `digit ${digit}` })
  )
  byId('scores').append(...scores.map((meter, digit) => html('li', {}, String(digit), meter)))
  const pad = new Pad(byId('pad'), pixels => void guess(pixels).catch(showProblem))
  byId('clear').addEventListener('click', () => {
    pad.clear()
    for (const meter of scores) meter.value = 0
    setText(byId('guess'), 'Draw a digit from 0 to 9.')
  })
  async function guess(pixels: Uint8Array): Promise<void> {
    if (peer === undefined) return setText(byId('guess'), 'Join first: then this tab has a model to predict with.')
    const body = new TextEncoder().encode(`${imageRow(pixels, undefined)}\n`)
    const [answer] = (await peer.request({ action: 'predict', format: 'libsvm', body })).predictions
    if ('error' in answer) throw new Error(answer.error)
    setText(byId('guess'), `The network sees a ${answer.label}.`)
    scores.forEach((meter, digit) => {
      meter.value = answer.scores[digit]
    })
  }
}

function ended(): void {
  peer = undefined
  feeder?.stop()
  rows.abort()
  showState('broken', 'Left')
  for (const id of ['leave', 'predict']) byId(id).hidden = true
  for (const id of ['name', 'keep']) byId<HTMLInputElement>(id).disabled = false
  showChoice()
}

form.addEventListener('change', showChoice)
byId('leave').addEventListener('click', () => {
  const leaving = peer
  ended()
  void leaving?.stop().catch(showProblem)
})
byId('predict').addEventListener('click', () => {
  if (peer) learnTyped(peer, byId<HTMLTextAreaElement>('typed').value, 'predict').catch(showProblem)
})
// The last moment at which messages of this tab leave it.
addEventListener('pagehide', () => peer?.leave())
addEventListener('pageshow', ({ persisted }) => {
  if (persisted) peer?.rejoin()
})
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
new ResizeObserver(draw).observe(document.body)
load().catch(showProblem)
