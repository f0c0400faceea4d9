/** What happened, and how things stand, in words. */
import type { NetworkEvent } from '../view/event-log.js'
import type { PeerRow } from '../view/types.js'
import { formatCount, formatLoss, formatShare, listOf, peerName } from './format.js'
import { markLetter } from './predictor-mark.js'

type Peers = ReadonlyMap<string, PeerRow>

export function describeEvent(event: NetworkEvent, peers: Peers): string {
  const { kind, count, detail } = event
  const who = listOf(event.peers.map(id => peerName(id, peers)).sort(order.compare), count)
  const one = count === 1
  switch (kind) {
    case 'joined':
      return `${who} joined`
    case 'left':
      return `${who} said goodbye`
    case 'lost':
      return `${who} fell silent: it has died, or nobody in between can be reached`
    case 'partitioned':
      if (detail === 'silent')
        return `${who} fell silent together: most likely the network is cut; both sides go on learning`
      return `${who} ${one ? 'is' : 'are'} cut off from the others; both sides go on learning`
    case 'healed':
      return `${who} ${one ? 'is' : 'are'} back, in the same run: what was cut has healed`
    case 'adopted':
      return `${who} took over the predictor${detail === undefined ? ' of others' : ` that ${peerName(detail, peers)} holds`}`
    case 'restarted':
      return `${who} is back in a new run${detail === '1' ? ', without its past' : ''}`
    case 'refused':
      return `${who === '' ? 'a peer' : who} does not take part here: ${named(detail ?? 'no reason is known', peers)}`
    default:
      return kind satisfies never
  }
}

/** A text with the names of peers in place of their ids. */
function named(text: string, peers: Peers): string {
  return text.replace(/(?:\bpeer )?\b(12D3KooW\w{44})\b/g, (_, id: string) => peerName(id, peers))
}

/** `peer 2` before `peer 10`. */
const order = new Intl.Collator('en', { numeric: true })

/** How things stand, in one sentence. */
export function describeNetwork(peers: readonly PeerRow[]): string {
  const fresh = peers.filter(peer => peer.alive)
  const silent = peers.filter(peer => !peer.alive && !peer.left).length
  const groups = new Set(fresh.map(({ group }) => group)).size
  const more = silent === 0 ? '' : `, ${formatCount(silent)} silent`
  if (peers.length === 0) return 'Nobody is here yet'
  if (fresh.length === 0) return silent === 0 ? 'All peers have left' : `Nobody speaks${more}`
  if (fresh.length === 1) return `One peer learns on its own${more}`
  if (groups === 1) return `${formatCount(fresh.length)} peers follow one predictor${more}`
  return `${formatCount(fresh.length)} peers follow ${formatCount(groups)} predictors${more}`
}

/** A node of the tree, for those who do not see it. */
export function describePeer(row: PeerRow, peers: Peers, self: string | undefined): string {
  const { id, group, inputs, predictor, loss, accuracy } = row
  const links = row.neighbours.map(other => peerName(other, peers))
  return [
    `${peerName(id, peers)}${id === self ? ', this peer' : ''}`,
    row.left ? 'has left' : row.alive ? undefined : 'silent',
    `predictor ${markLetter(group)} with ${formatCount(predictor.updates)} updates`,
    `${formatCount(inputs)} inputs`,
    `loss ${formatLoss(loss)}`,
    accuracy === undefined ? undefined : `accuracy ${formatShare(accuracy)}`,
    links.length === 0 ? 'linked with nobody' : `linked with ${listOf(links)}`
  ]
    .filter(Boolean)
    .join(', ')
}
