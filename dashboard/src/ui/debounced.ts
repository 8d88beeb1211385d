import { useEffect, useState } from "react";

/** A value that follows another one once that has stayed the same for some time. */
export function useDebounced<T>(value: T, ms = 400): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}
