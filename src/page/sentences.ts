/** Events and the state of the network as sentences. */

import { windowName } from '../view/names.js'
import type { NetworkEvent, PeerRow } from '../view/types.js'
import {
  formatCount,
  formatError,
  formatLoss,
  formatR2,
  formatShare,
  isSquaredError,
  listOf,
  type Measure,
  markLetter,
  measureOf,
  peerName
} from './format.js'
import type { NetworkState } from './network-state.js'

type Peers = ReadonlyMap<string, PeerRow>

export function describeEvent(event: NetworkEvent, peers: Peers): string {
  const { kind, count, detail } = event
  const who = listOf(event.peers.map(id => peerName(id, peers)).sort(order.compare), count)
  const one = count === 1
  switch (kind) {
    case 'joined':
      return `${who} joined`
    case 'left':
      return `${who} left`
    case 'lost':
      return `${who} stopped responding: it crashed or cannot be reached`
    case 'partitioned':
      if (detail === 'silent')
        return `${who} stopped responding together: probably a network partition; both sides continue to learn`
      return `${who} ${one ? 'is' : 'are'} disconnected from the other peers; both sides continue to learn`
    case 'healed':
      return `${who} ${one ? 'is' : 'are'} back in the same run: the partition has healed`
    case 'adopted':
      return `${who} adopted the predictor of ${detail === undefined ? 'other peers' : peerName(detail, peers)}`
    case 'restarted':
      return `${who} restarted${detail === '1' ? ' without its previous state' : ''}`
    case 'refused':
      return `${who === '' ? 'a peer' : who} was refused: ${withNames(detail ?? 'unknown reason', peers)}`
    case 'duplicated':
      return `${who} ${one ? 'runs' : 'run'} twice at the same time with one identity: stop one of them`
    case 'drift':
      if (detail === 'network') return `the loss rose at most peers (${who}): the data of the network have changed`
      return `the loss of ${who} rose: its data may have changed`
    default:
      return kind satisfies never
  }
}

/** Replaces the ids of peers by their names. */
function withNames(text: string, peers: Peers): string {
  return text.replace(/(?:\bpeer )?\b(12D3KooW\w{44})\b/g, (_, id: string) => peerName(id, peers))
}

/** `peer 2` before `peer 10`. */
const order = new Intl.Collator('en', { numeric: true })

/** The state of the network in one sentence. */
export function describeNetwork({ rows, network, groups }: Pick<NetworkState, 'rows' | 'network' | 'groups'>): string {
  const alive = Math.max(rows.filter(peer => peer.alive).length, network?.peers ?? 0)
  const silent = rows.filter(peer => !peer.alive && !peer.left).length
  const more = silent === 0 ? '' : `, ${formatCount(silent)} silent`
  if (rows.length === 0) return 'No peers yet'
  if (alive === 0) return silent === 0 ? 'All peers have left' : `No peer responds${more}`
  if (alive === 1) return `One peer learns on its own${more}`
  if (groups.length === 1) return `${formatCount(alive)} peers follow one predictor${more}`
  // The list of groups has a limit.
  const listed = groups.reduce((sum, { peers }) => sum + peers, 0)
  const count = `${listed < alive ? 'at least ' : ''}${formatCount(groups.length)}`
  return `${formatCount(alive)} peers follow ${count} predictors${more}`
}

/** The answer of `GET /schema`. */
export interface LearnedSchema {
  /** @default the next token of a text */
  readonly label?: {
    readonly name?: string
    readonly kind: 'class' | 'number'
    readonly names?: readonly string[]
    readonly classes?: number
  }
  readonly columns?: readonly { readonly name: string; readonly kind: string; readonly role?: string }[]
  /** A program has the model and the inputs. */
  readonly external?: true
}

/** What is learned, in one sentence. @param data name of the data */
export function describeSchema({ label, columns, external }: LearnedSchema, data: string | undefined): string {
  if (external) return 'A program has the model of this peer, and computes its gradients.'
  const name = label?.name === undefined ? 'the label' : `“${label.name}”`
  const classes = label?.names ? shortList(label.names) : `${label?.classes ?? 2} classes`
  const targets = { number: `${name}, a number`, class: `${name} (${classes})`, token: 'the next token of a text' }
  const target = targets[label?.kind ?? 'token']
  const features = columns
    ?.filter(({ kind, role }) => kind !== 'ignored' && role === undefined)
    .map(column => column.name)
  const from = features === undefined ? '' : ` from ${shortList(features)}`
  return `This peer learns to predict ${target}${from}.${data === undefined ? '' : ` Data: ${data === '-' ? 'standard input' : data}.`}`
}

/** What the plots show, in one sentence. @param label the name of the label, if it has one */
export function describeMeasure({ name }: Measure, label: string | undefined): string {
  const what = {
    Loss: 'The mean loss (in nats) of all predictions so far',
    RMSE: `The root mean squared error of all predictions so far, in the unit of ${label === undefined ? 'the target' : `“${label}”`}`
  }
  return `${what[name]}, each made before its input was learned; lower is better.`
}

/** Whether only peers of the same machine can reach an address. */
export const isNear = (address: string): boolean => /^\/ip4\/127\.|^\/ip6\/::1\//.test(address)

/** How another peer joins a network of one. @param addresses of the peer that serves the page */
export function joinCommand(
  addresses: readonly string[],
  { label, external }: LearnedSchema,
  data: string | undefined
): string | undefined {
  const [address] = [...addresses].sort((a, b) => Number(isNear(a)) - Number(isNear(b)))
  if (address === undefined) return undefined
  if (external) return `npx admb peer --learner external --dir state --peer ${address}`
  const [extension = ''] = /\.\w+(\.gz)?$/.exec(data ?? '') ?? []
  const rows = data === 'digits' ? data : `other${extension === '' ? '.csv' : extension}`
  const named = label?.name === undefined ? '' : ` --label ${shellWord(label.name)}`
  return `npx admb peer --data ${rows}${named} --peer ${address}`
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** The first names, and how many follow. */
function shortList(names: readonly string[]): string {
  const max = 8
  return listOf(names.slice(0, max), names.length)
}

/** The figures of a peer over windows by time, in one sentence; empty without them. */
export function describeWindows(row: PeerRow | undefined, peers: Peers): string {
  if (row?.windows === undefined) return ''
  const parts = row.windows.map(({ seconds, inputs, loss, accuracy, rmse, r2 }) => {
    const figures = isSquaredError({ loss, rmse }) ? [] : [`loss ${formatLoss(loss)}`]
    if (accuracy !== undefined) figures.push(`accuracy ${formatShare(accuracy)}`)
    if (rmse !== undefined) figures.push(`RMSE ${formatLoss(rmse)}`)
    if (r2 !== undefined) figures.push(`R² ${formatR2(r2)}`)
    return `over the last ${windowName(seconds)}, ${figures.join(', ')} (${formatCount(inputs)} input${inputs === 1 ? '' : 's'})`
  })
  return `Figures of ${peerName(row.id, peers)} by time: ${parts.join('; ')}.`
}

/** Describes a node of the tree for screen readers. */
export function describePeer(row: PeerRow, peers: Peers, self: string | undefined): string {
  const { id, group, inputs, predictor, loss, accuracy, recent } = row
  const links = row.neighbours.map(other => peerName(other, peers))
  const measure = measureOf([row])
  return [
    `${peerName(id, peers)}${id === self ? ', this peer' : ''}`,
    row.left ? 'has left' : row.alive ? undefined : 'silent',
    `predictor ${markLetter(group)} with ${formatCount(predictor.updates)} updates`,
    `${formatCount(inputs)} inputs`,
    `${measure.noun} ${formatError(measure, loss)}`,
    recent === undefined ? undefined : `recent ${measure.noun} ${formatError(measure, recent.loss)}`,
    accuracy === undefined ? undefined : `accuracy ${formatShare(accuracy)}`,
    links.length === 0 ? 'not linked' : `linked with ${listOf(links)}`
  ]
    .filter(Boolean)
    .join(', ')
}
