/** Types of the options of peers. */
import { type OptionTypes, optionTypes as types } from '../learner/index.js'
import { executionType, specType, streamType } from '../task/option-types.js'
import type { PeerOptions } from './options.js'

const { bytes, choice, flag, number, object, text, texts } = types

/** Of `PeerOptions`. */
export const peerTypes: OptionTypes<PeerOptions> = {
  spec: specType,
  execution: executionType,
  stream: streamType,
  rate: number,
  labelDelay: number,
  period: types.either(number, choice('auto')),
  carry: number,
  predictWith: text,
  drift: choice('adwin', 'page-hinkley', 'off'),
  windows: types.numbers,
  dp: object('{ epsilon: 1, delta: 1e-6, clip: 1 }'),
  webhook: text,
  dir: text,
  keepJournal: flag,
  store: choice('memory', 'disk'),
  listen: texts,
  peers: texts,
  degree: number,
  mdns: flag,
  relay: flag,
  upgrades: object('new WebSocketUpgrades()'),
  stun: texts,
  networkKey: bytes,
  networkId: text,
  allow: types.set,
  acceptInvitations: flag,
  invitation: text,
  gate: choice('wholes', 'all'),
  maxRate: number,
  auditors: types.set,
  jumpSigners: number,
  wholeSigners: number,
  identity: object('an Ed25519 key pair'),
  name: text,
  plugins: texts,
  log: types.callback
}

export const peerType = types.options<PeerOptions>(peerTypes, ['spec', 'log'])
