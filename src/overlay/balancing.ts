/**
 * Voluntary moves. Tree fragments merge as a whole, so trees can grow deep. A node with a free slot below it and a branch
 * deeper than that slot offers the slot down that branch. The topmost node for which the move brings at least half of the
 * possible gain accepts, and moves with its subtree as if its parent had died, including the freeze, so moves need no safety
 * argument of their own. Each move makes every moved node shallower; moves end when the tree has the minimum height.
 */
import type { Offer } from './messages.js'
import { becomeRoot } from './relabelling.js'
import type { State } from './state.js'
import { MAX_PATH } from './wire.js'

/**
 * Offers a slot if the subtree is unbalanced. Called at each heartbeat; waits between offers as long as the effect of the
 * last one may take to be reported from the leaves.
 */
export function offerSlot(state: State, now: number): void {
  if (now < state.offerAt || state.freeze !== undefined || state.isLate) return
  const { height } = state.children.summary(state.self)
  state.offerAt = now + state.jitter(state.settings.timers.heartbeat * (2 + height / 2), 0.25)
  const imbalance = state.children.imbalance(state.self)
  if (imbalance === undefined) return
  const { child, slot, deepest } = imbalance
  const depth = state.path.length
  const slotDepth = depth + slot.distance
  // Exceeds the depth limit only if a child sends wrong summaries.
  if (Math.max(slotDepth, depth + deepest) > MAX_PATH) return
  state.send(child.session, { kind: 'offer', contact: slot.contact, slotDepth, deepest: depth + deepest })
}

/** Accepts an offer, or passes it to the deepest branch. */
export function onOffer(state: State, now: number, offer: Offer): void {
  const { parent } = state
  if (state.isLate || parent === undefined || state.freeze !== undefined || offer.contact.peer === state.settings.self)
    return
  if (state.book.isDistrusted(now, offer.contact.peer)) return
  const { timers } = state.settings
  const depth = state.path.length
  const deepest = depth + state.children.summary(state.self).height
  const gain = depth - (offer.slotDepth + 1)
  const possible = deepest - (offer.slotDepth + 1)
  if (possible < 1) return
  if (state.canDial(offer.contact.addresses) && gain >= 1 && 2 * gain >= possible) {
    if (now - state.movedAt < timers.moveHold) return
    state.movedAt = now
    const former = state.path[state.path.length - 1]
    state.closeWithBye(parent.session, 'moving')
    becomeRoot(state, now, 'moving', [offer.contact, former])
    return
  }
  let tallest = -1
  let towards: number | undefined
  for (const child of state.children) {
    const height = child.summary?.height ?? 0
    if (child.peer !== offer.contact.peer && height > tallest) {
      tallest = height
      towards = child.session
    }
  }
  if (towards !== undefined) state.send(towards, offer)
}
