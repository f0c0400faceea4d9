/**
 * The pace of the demo's streams, which follows the machine: the peers that can reach each other share the inputs of a batch, and each
 * waits for the next predictor when it has learned its part. So few gradients are those of an old predictor.
 */

/** What the pace depends on. */
export interface PacedPeer {
  readonly batch: number
  /** Whether its stream has ended. */
  readonly ended: boolean
}

/**
 * @param peers by place; undefined for one that does not take part
 * @param groups places of the peers that can reach each other
 * @returns by place, the number of inputs for each update of the predictor; 0 for a peer that does not take part
 */
export function inputsPerUpdate(
  peers: readonly (PacedPeer | undefined)[],
  groups: readonly (readonly number[])[]
): number[] {
  const shares = peers.map(() => 0)
  for (const group of groups) {
    const places = group.filter(place => peers[place]?.ended === false)
    // One more than its part, because a gradient can come too late.
    for (const place of places) shares[place] = Math.floor((peers[place] as PacedPeer).batch / places.length) + 1
  }
  return shares
}
