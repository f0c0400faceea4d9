/**
 * What is gossiped about: `beacon` (who leads which fragment, and where), `head` (the best predictor known) and `status` (how
 * a peer is, for the picture that people see of the network).
 */
export type Topic = 'beacon' | 'head' | 'status'

/** In the order of their numbers in a greeting. */
export const topics: readonly Topic[] = ['beacon', 'head', 'status']

/** The gossipsub topic's name. */
export const topicName = (topic: Topic): string => `admb/1/${topic}`
