/**
 * Mutation test: without each mechanism for peers that cannot be dialled, the tree does not become whole.
 */
import { describeMutants } from '../../support/mutants.js'

const tabs = { topology: 'overlay', nodes: 6, degree: 3, tabs: 2, tabHosts: 1 } as const

describeMutants('reachability', [
  {
    without: 'regard to what a joining peer can dial',
    changes: [
      {
        file: 'src/overlay/children.js',
        from: 'return (this.#transportsOf(addresses) & dials) !== 0;',
        to: 'return true;'
      }
    ],
    breaks: ['overlay'],
    scenario: tabs
  },
  {
    without: 'room for peers that cannot be passed on',
    changes: [
      {
        file: 'src/overlay/joining.js',
        from: 'const child = slot === undefined ? state.children.movable() : undefined;',
        to: 'const child = undefined;'
      }
    ],
    breaks: ['overlay'],
    scenario: tabs
  },
  {
    without: 'roots that yield',
    changes: [
      { file: 'src/overlay/joining.js', from: 'const mayYield = state.isRoot &&', to: 'const mayYield = false &&' }
    ],
    breaks: ['overlay'],
    scenario: { ...tabs, degree: 2, tabs: 1 }
  },
  {
    without: 'younger labels of peers that cannot be dialled',
    changes: [
      {
        file: 'src/overlay/joining.js',
        from: 'if (!same && !state.isReachable(dials) && isOlder(state.label, label))',
        to: 'if (false)'
      }
    ],
    breaks: ['overlay'],
    scenario: tabs
  },
  {
    without: 'beacons of tabs that other tabs can dial',
    seed: 516,
    changes: [{ file: 'src/overlay/node.js', from: 'state.isReachable(ALL_TRANSPORTS)', to: 'state.isReachable(3)' }],
    breaks: ['overlay'],
    scenario: { ...tabs, nodes: 5, tabs: 4, tabLinks: true }
  },
  {
    without: 'places of tabs for other peers below the root',
    seed: 4,
    changes: [
      {
        file: 'src/overlay/joining.js',
        from: 'const tab = mayYield || mayMove ?',
        to: 'const tab = mayYield ?'
      }
    ],
    breaks: ['overlay'],
    scenario: { ...tabs, nodes: 10, degree: 2, tabs: 7, tabHosts: 3, tabLinks: true }
  }
])
