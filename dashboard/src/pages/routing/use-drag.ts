import { type PointerEvent, type RefObject, useRef, useState } from "react";

interface Drag {
  from: number;
  /** Where it would be dropped. */
  to: number;
}

/** Drags the rows of a list by their handles, with a mouse, a pen or a finger. */
export function useDrag(list: RefObject<HTMLElement | null>, onDrop: (from: number, to: number) => void) {
  const [drag, setDrag] = useState<Drag>();
  // The events of one gesture come faster than React draws.
  const now = useRef<Drag>(undefined);
  const update = (next: Drag | undefined) => {
    now.current = next;
    setDrag(next);
  };
  const targetOf = (from: number, y: number): number => {
    const rows = [...(list.current?.children ?? [])].map((row) => row.getBoundingClientRect());
    const before = rows.filter((row, at) => at !== from && row.top + row.height / 2 < y).length;
    return Math.min(before, rows.length - 1);
  };
  const handle = (from: number) => ({
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      update({ from, to: from });
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      if (now.current) update({ from, to: targetOf(from, event.clientY) });
    },
    onPointerUp: () => {
      const done = now.current;
      update(undefined);
      if (done && done.to !== done.from) onDrop(done.from, done.to);
    },
    onPointerCancel: () => update(undefined),
  });
  return { drag, handle };
}
