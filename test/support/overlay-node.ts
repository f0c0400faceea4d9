/** Single nodes of the overlay, for tests of its rules. */
import assert from 'node:assert/strict'
import { type Contact, type Effect, type Label, type OverlayMessage, OverlayNode } from '../../src/overlay/index.js'

export const T0 = 1_000_000
export const make = (self = 'me', more: Partial<ConstructorParameters<typeof OverlayNode>[0]> = {}): OverlayNode =>
  new OverlayNode({ self, now: T0, random: () => 0.5, addresses: [`/${self}`], ...more })
export const contact = (peer: string): Contact => ({ peer, addresses: [`/${peer}`] })
export const label = (createdAt: number, root: string): Label => ({ createdAt, root })
export const sent = (effects: Effect[]): OverlayMessage[] =>
  effects.flatMap(effect => (effect.kind === 'send' ? [effect.message] : []))
export const kinds = (effects: Effect[]): string[] =>
  effects.map(effect => (effect.kind === 'send' ? effect.message.kind : effect.kind))

/** `peer` sends JOIN to `node`. Returns the session and the effects. */
export function join(
  node: OverlayNode,
  now: number,
  peer: string,
  createdAt = T0 + 1
): { session: number; did: Effect[] } {
  const session = node.inbound(now, peer)
  assert.ok(session !== undefined)
  node.receive(now, session, { kind: 'join', label: label(createdAt, peer), addresses: [`/${peer}`] })
  return { session, did: node.takeEffects() }
}

/** Makes `node` a child of `parent` in the tree of `root`. Returns the session. */
export function attach(node: OverlayNode, now: number, parent = 'dad', root = 'old', createdAt = 1): number {
  node.candidate(now, parent, [`/${parent}`])
  const open = node.takeEffects().find(effect => effect.kind === 'open')
  assert.ok(open?.kind === 'open')
  node.opened(now, open.session)
  const path = parent === root ? [contact(parent)] : [contact(root), contact(parent)]
  node.receive(now, open.session, { kind: 'accept', label: label(createdAt, root), path })
  node.takeEffects()
  assert.equal(node.view().parent?.peer, parent)
  return open.session
}
