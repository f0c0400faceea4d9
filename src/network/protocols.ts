/** Ids of the stream protocols, and gossip topics; see docs/protocol-network.md. */
export const edgeProtocol = '/admb/edge/1'
export const fetchProtocol = '/admb/fetch/1'
export const catchUpProtocol = '/admb/greet/1'
export const referralProtocol = '/admb/refer/1'

/** `beacon`: roots of tree fragments; `head`: new predictors; `run`: runs of peers, which show whether two live peers have one identity. */
export type Topic = 'beacon' | 'head' | 'run'

/** Ordered by their numbers in a gossip catch-up. */
export const topics: readonly Topic[] = ['beacon', 'head', 'run']

/** Name of the gossipsub topic. @param tag of the hello */
export const topicName = (topic: Topic, tag: string): string => tagged(`admb/1/${topic}`, tag)

/** A name that only peers of one network understand. @param networkId if it has one */
export const inNetwork = (name: string, networkId?: string): string =>
  networkId === undefined ? name : tagged(name, networkId)

/** A name that only peers with an equal hello understand. @param tag of the hello */
export const tagged = (name: string, tag: string): string => `${name}/${tag}`
